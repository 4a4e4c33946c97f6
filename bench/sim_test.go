package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardd/shardd/bench/internal/experiment"
)

func TestSimArguments(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		out, err := run(t, append([]string{"sim"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q\n%s", args, err, want, out)
		}
	}
	f("no experiment")
	f("unknown experiment", "magic")
	f("unknown command", "retry", "extra")
	f("unknown flag", "retry", "--lambda", "0.5")
	f("output", "retry", "-o", "xml")
	f("bad parameter", "homo", "--lambda", "-1")
	f("--seeds is given and empty or 0", "homo", "--seeds", "0")
	f("--policies is given and empty or 0", "homo", "--policies=")
	f("bad parameter", "all", "--units", "1e12")
	f("workers", "retry", "--workers", "-1")
	f("not a directory", "retry", "--plot", "sim_test.go")
	f("no such file", "retry", "--docs", t.TempDir())
}

// TestSimOutput: the same rows in each form, the same bytes every time.
func TestSimOutput(t *testing.T) {
	once, err := run(t, "sim", "retry", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	again, err := run(t, "sim", "retry", "-o", "json", "--workers", "1")
	if err != nil || once != again {
		t.Errorf("%v\n%s\n%s", err, once, again)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(once), &rows); err != nil || len(rows) != 4 || rows[1]["sent"] != 80068. || rows[1]["ok"] != true {
		t.Errorf("%v, %v", rows, err)
	}
	table, err := run(t, "sim", "retry")
	if err != nil || !strings.Contains(table, "80068") || strings.Contains(table, "FAILED") {
		t.Errorf("%v\n%s", err, table)
	}
}

// TestSimLists: a list plays each of its values.
func TestSimLists(t *testing.T) {
	out, err := run(t, "sim", "stale", "--n", "4", "--T", "0,3", "--policies", "p2c", "--units", "50", "--seeds", "1", "-o", "csv")
	if err != nil || strings.Count(out, "\n") != 1+2*2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSimShort: what fails because it was too short is said to be short; what an
// experiment has no use for is said, too.
func TestSimShort(t *testing.T) {
	out, err := run(t, "sim", "homo", "--policies", "p2c", "--lambda", ".9", "--units", "20", "--seeds", "1", "--quick")
	if !errors.Is(err, errFailed) || !strings.Contains(out, "note: homo was played with units 20 of 50000, seeds 1 of 3") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run(t, "sim", "retry", "--seeds", "3")
	if err != nil || !strings.Contains(out, "note: retry has no use for --seeds") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestExitCodes: 1 is what was played and is not as expected, 2 what cannot be
// played.
func TestExitCodes(t *testing.T) {
	f := func(want int, args ...string) {
		t.Helper()
		c := newRoot()
		c.SetArgs(args)
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		if got := execute(t.Context(), c, io.Discard); got != want {
			t.Errorf("%v: exit %d, want %d", args, got, want)
		}
	}
	f(0, "sim", "retry")
	f(1, "sim", "homo", "--policies", "p2c", "--lambda", ".9", "--units", "20", "--seeds", "1")
	f(1, "tables", "--quick", "--docs", t.TempDir())
	f(2, "sim", "homo", "--lambda", "NaN")
	f(2, "sim", "homo", "--nothing")
	f(2, "sim", "nothing")
	f(2, "sim")
}

// TestSimDocs writes the block of a page and its plot, and nothing else.
func TestSimDocs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "resilience.md")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "plots"), 0o755), os.WriteFile(path, []byte("# Retries\n<!-- sim:retry -->\nold\n<!-- /sim:retry -->\nend\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	plots := t.TempDir()
	if _, err := run(t, "sim", "retry", "--docs", dir, "--plot", plots); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "80068") || strings.Contains(string(text), "old") || !strings.HasSuffix(string(text), "end\n") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, name := range []string{filepath.Join(dir, "plots", "sim-retry.svg"), filepath.Join(plots, "retry.svg"), filepath.Join(plots, "retry.png")} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

// TestSimPages: every experiment has its block on its page.
func TestSimPages(t *testing.T) {
	for _, x := range experiment.All() {
		text, err := os.ReadFile(filepath.Join("..", "docs", "algorithms", x.Page))
		if err != nil || !strings.Contains(string(text), "<!-- "+simBlock(x.Name)+" -->") {
			t.Errorf("%s: %s has no block (%v)", x.Name, x.Page, err)
		}
	}
}

func TestVerdict(t *testing.T) {
	good := experiment.Row{Metrics: []experiment.Metric{{Name: "x", Value: 1}}, Checks: []experiment.Check{{Metric: "x", Expected: 1}}}
	bad := good
	bad.Checks = []experiment.Check{{Metric: "x", Expected: 2}}
	if err := verdict([]experiment.Row{good}); err != nil {
		t.Error(err)
	}
	if err := verdict([]experiment.Row{good, bad}); !errors.Is(err, errFailed) {
		t.Errorf("a row that failed: %v", err)
	}
}
