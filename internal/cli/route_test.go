package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestRouteLines: every line of the table form names its key without doubt.
func TestRouteLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("cluster: c\nalgorithm: ring\nnodes: [{id: a}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "", `"`, `"\t"`, "\t", `"a"`, "a\nb", "a\r", `a"b\t`, "\x00", "\xff"} {
		got := call(t, Shardd, "", "route", "--file", file, "--", key)
		name, nodes, _ := strings.Cut(strings.TrimSuffix(got.stdout, "\n"), "\t")
		if strings.HasPrefix(name, `"`) {
			var err error
			if name, err = strconv.Unquote(name); err != nil {
				t.Fatalf("key %q: %q: %v", key, got.stdout, err)
			}
		}
		if got.code != 0 || name != key || nodes != "a" {
			t.Errorf("key %q: %+v", key, got)
		}
	}
}

// TestFlowsRange: a number of flows that means nothing is refused.
func TestFlowsRange(t *testing.T) {
	if got := call(t, Migrate, "", "plan", "--from", "a", "--to", "b", "--flows", "-5"); got.code != ExitUsage || !strings.Contains(got.stderr, "--flows -5") {
		t.Errorf("%+v", got)
	}
}
