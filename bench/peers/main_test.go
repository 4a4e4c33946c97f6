package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardd/shardd/bench/internal/peertable"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-quick"})
	if err != nil || !slices.Equal(o.nodes, []int{10, 100}) || !o.placements || !o.pickers {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = parse([]string{"-nodes", "7, 30", "-what", "pickers"})
	if err != nil || !slices.Equal(o.nodes, []int{7, 30}) || o.placements {
		t.Errorf("%+v, %v", o, err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	f("-nodes", "-nodes", "1")
	f("ascending", "-nodes", "100,10")
	f("-pick-nodes", "-pick-nodes", "ten")
	f("unknown argument", "tables")
}

func TestRun(t *testing.T) {
	var out, talk bytes.Buffer
	if err := run([]string{"-quick", "-nodes", "5", "-what", "placements", "-only", "maglev", "-o", "json"}, &out, &talk); err != nil {
		t.Fatal(err)
	}
	var r peertable.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Placements) != 3 || r.Placements[0].Exact == nil || len(r.Pickers) != 0 {
		t.Errorf("%+v", r)
	}
	page := filepath.Join(t.TempDir(), "peers.md")
	text := "<!-- peers-5 -->\n" + r.PlacementTable(5).Markdown() + "<!-- /peers-5 -->\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-quick", "-nodes", "5", "-what", "placements", "-only", "maglev", "-check", page}
	if err := run(args, &out, &talk); err != nil {
		t.Error(err)
	}
	text = strings.Replace(text, "1.01 |", "1.09 |", 1)
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(args, &out, &talk); err == nil {
		t.Error("another figure on the page was not noticed")
	}
	if err := run([]string{"-what", "nothing", "-o", "xml"}, &out, &talk); err == nil {
		t.Error("an unknown output was taken")
	}
}
