package tables

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/bench/internal/exact"
	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/peertable"
)

const docs = "../../../docs/algorithms"

// The figures on the pages that do not depend on the machine are what the code
// computes. `go run ./bench tables --quick` compares the slow ones as well.
func TestPagesAreCurrent(t *testing.T) {
	quick := func(b exact.Block) bool { return !b.Slow }
	if raceDetector { // which has nothing to find here and takes ten times as long
		quick = slotsOnly
	}
	if err := Check(docs, quick, func(string) {}); err != nil {
		t.Error(err)
	}
}

func slotsOnly(b exact.Block) bool { return b.Page == "slots.md" && b.Name == "zones" }

// Every picture that a page shows is there.
func TestPicturesAreThere(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, p := range pages {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "](plots/")[1:] {
			name, _, _ := strings.Cut(part, ")")
			if _, err := os.Stat(filepath.Join(docs, PlotDir, name)); err != nil {
				t.Errorf("%s shows %s, which is not there", p, name)
			}
		}
	}
}

// copied is a directory with a copy of the pages.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(docs)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCheckFindsAStaleFigure(t *testing.T) {
	dir := copied(t)
	path := filepath.Join(dir, "slots.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stale := bytes.Replace(text, []byte("2520 of 2520"), []byte("2519 of 2520"), 1)
	if bytes.Equal(stale, text) {
		t.Fatal("the page has no such figure")
	}
	if err := os.WriteFile(path, stale, 0o644); err != nil {
		t.Fatal(err)
	}
	err = Check(dir, slotsOnly, func(string) {})
	if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "slots.md, block zones") {
		t.Errorf("Check = %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := Check(dir, slotsOnly, func(string) {}); err == nil {
		t.Error("a page that is missing was not missed")
	}
}

// report has what the pages ask for.
func report() peertable.Report {
	r := peertable.Report{Command: "go run -C bench/peers .", Machine: "a machine", Keys: 1_000_000, Pairs: 10}
	for _, n := range []int{10, 100, 1000, 10000} {
		for _, family := range families {
			r.Placements = append(r.Placements, peertable.Placement{
				Subject: family, Family: family, Ours: true, Nodes: n,
				Speed: &peertable.Speed{Key: 10, Ratio: 1.5, Build: 2, Add: .25, Remove: .5, Bytes: 2000},
				Exact: &peertable.Exact{Keys: 1000, Peak: 1.01, CV: .02, Add: 1, Remove: 1},
			})
		}
		r.Placements = append(r.Placements, peertable.Placement{Subject: "other", Family: "ring", Nodes: n, Left: "too slow", Note: "a note"})
	}
	r.Placements[0].Speed, r.Placements[0].Exact = nil, nil
	r.Pickers = []peertable.Picker{{Subject: "p2c", Ours: true, Nodes: 10, Clock: "argument", Pick: 25, Ratio: 3, Two: .9}}
	return r
}

func TestMeasured(t *testing.T) {
	dir := copied(t)
	p := open(dir)
	if err := p.measured(report()); err != nil {
		t.Fatal(err)
	}
	if err := p.write(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ring.md"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := page.Block(text, "speed")
	if err != nil {
		t.Fatal(err)
	}
	want := "| x floor, N = | 10 |  100 | 1,000 | 10,000 |\n" +
		"|--------------|---:|-----:|------:|-------:|\n" +
		"| ring         |  - | 1.50 |  1.50 |   1.50 |\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	text, err = os.ReadFile(filepath.Join(dir, peersPage))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1,000,000 keys of 16 bytes", "- other at N = 10: too slow", "- other: a note", "| **p2c** "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q on the page", want)
		}
	}
	if rows, err := report().Check(text); err != nil || rows != 19 {
		t.Errorf("the counts on the page: %d rows, %v", rows, err)
	}
}

func TestMeasuredPlots(t *testing.T) {
	list := measuredPlots(report())
	if len(list) != 3 {
		t.Errorf("%d plots", len(list))
	}
	for name, p := range list {
		if _, err := p.SVG(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(list["peers-computed.svg"].Series); n != 2 {
		t.Errorf("%d curves of jump and rendezvous", n)
	}
}
