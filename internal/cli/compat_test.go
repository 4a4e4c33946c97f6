package cli

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// compatFile writes a cluster file of five nodes under a mode.
func compatFile(t *testing.T, mode topology.Mode) (path string, d topology.Declared) {
	t.Helper()
	text := fmt.Appendf(nil, "cluster: c\ncompat: {mode: %s}\nnodes:\n", mode)
	for i := range 5 {
		text = fmt.Appendf(text, "  - {id: n%d, addr: \"10.0.0.%d:7200\"}\n", 9-i, i+1)
	}
	path = filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := clusterfile.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	return path, d
}

// route answers in every mode, for texts and for bytes, and stdout has nothing
// but answers.
func TestRouteInEveryMode(t *testing.T) {
	keys := []string{"key-0", "{user1000}.following", "10.1.2.3", "\xff\x80é", "a b"}
	var text, hexed strings.Builder
	for _, k := range keys {
		fmt.Fprintln(&text, k)
		fmt.Fprintln(&hexed, hex.EncodeToString([]byte(k)))
	}
	for _, mode := range topology.Modes() {
		path, d := compatFile(t, mode)
		byText := call(t, Shardd, text.String(), "route", "--file", path, "--keys", "-")
		byHex := call(t, Shardd, hexed.String(), "route", "--file", path, "--keys-hex", "--keys", "-")
		if byText.code != 0 || byHex.code != 0 {
			t.Errorf("%s: %+v, %+v", mode, byText, byHex)
			continue
		}
		m, err := compat.New(d.Spec.Compat, d.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		lines, hexLines := strings.Split(byText.stdout, "\n"), strings.Split(byHex.stdout, "\n")
		for i, k := range keys {
			_, a, _ := strings.Cut(lines[i], "\t")
			_, b, _ := strings.Cut(hexLines[i], "\t")
			if a != b || mode != topology.ModeRedisSlots && a != d.Nodes[m.LocateKey(k)].ID {
				t.Errorf("%s: key %q goes to %s, by bytes to %s", mode, k, a, b)
			}
		}
	}
}

// A plan from a foreign mapping to a native one names share, minimum and nodes,
// and warns on standard error.
func TestPlanFromForeign(t *testing.T) {
	from, _ := compatFile(t, topology.ModeGomemcache)
	to := filepath.Join(t.TempDir(), "native.yaml")
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(strings.Replace(string(b), "compat: {mode: gomemcache}", "algorithm: ring", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	got := call(t, Migrate, "", "plan", "--from", from, "--to", to, "-o", "json")
	var plan struct {
		Movement struct{ Ratio, Minimum float64 }
		Nodes    []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &plan); err != nil || got.code != 0 {
		t.Fatalf("%+v: %v", got, err)
	}
	if plan.Movement.Ratio < .75 || plan.Movement.Ratio > .85 || plan.Movement.Minimum != 0 || len(plan.Nodes) != 5 {
		t.Errorf("%+v", plan)
	}
	if !strings.Contains(got.stderr, "adding one to 5 moves 83.3 % of the keys, where 16.7 % would do") {
		t.Errorf("no warning: %q", got.stderr)
	}
}
