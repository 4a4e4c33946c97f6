package main

import (
	"encoding/json"
	"errors"
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
