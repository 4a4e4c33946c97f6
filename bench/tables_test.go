package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := newRoot()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestArguments(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		out, err := run(t, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q\n%s", args, err, want, out)
		}
	}
	f("unknown command", "tables2")
	f("unknown command", "tables", "extra")
	f("none of the others", "tables", "--quick", "--exact")
	f("no such file", "tables", "--quick", "--docs", t.TempDir())
	f("no such file", "tables", "--peers", "nowhere.json")
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	f("what bench/peers measured", "tables", "--peers", broken)
}

func TestHelp(t *testing.T) {
	out, err := run(t, "tables", "--help")
	if err != nil || !strings.Contains(out, "--quick") {
		t.Errorf("%v\n%s", err, out)
	}
}
