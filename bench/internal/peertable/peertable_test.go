package peertable

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func report() Report {
	return Report{
		Command: "c", Machine: "m", Keys: 1000, Pairs: 3,
		Placements: []Placement{
			{Subject: "ring", Family: "ring", Ours: true, Nodes: 10, Note: "ours",
				Speed: &Speed{Key: 12.34, Ratio: 2.0449, Allocs: 0, Build: .034, Add: .01, Remove: 0, Bytes: 4000},
				Exact: &Exact{Keys: 1000, Peak: 1.0516, CV: .0501, Add: 1.02, Remove: .98}},
			{Subject: "other", Family: "ring", Nodes: 10, Speed: &Speed{Key: 120, Ratio: 20, Allocs: 1.5, Bytes: 40 << 20}},
			{Subject: "other", Family: "ring", Nodes: 10000, Left: "too slow", Note: "sorts"},
		},
		Pickers: []Picker{{Subject: "p2c", Ours: true, Nodes: 1000, Clock: "argument", Pick: 29.5, Ratio: 2, Two: .8, Worked: 1.8}},
	}
}

func TestTables(t *testing.T) {
	got := report().PlacementTable(10).Text()
	want := `N = 10    x floor    ns  allocs  build ms   bytes  add ms  remove ms   peak     cv  add x min  remove x min  needless
**ring**     2.04  12.3       0     0.034   4 KiB    0.01       0.00  1.052  0.050       1.02          0.98      0.00
other        20.0   120    1.50      0.00  40 MiB    0.00       0.00
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := report().ExactTable(10); len(got.Rows) != 1 {
		t.Errorf("ExactTable: %v", got.Rows)
	}
	if got := report().PickerTable().Text(); !strings.Contains(got, "1,000") || !strings.Contains(got, "1.80") {
		t.Error(got)
	}
}

func TestWords(t *testing.T) {
	r := report()
	if d := cmp.Diff([]string{"other at N = 10,000: too slow"}, r.Left()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"ring: ours", "other: sorts"}, r.Notes()); d != "" {
		t.Error(d)
	}
	if got := r.Sizes(); !slices.Equal(got, []int{10, 10000}) {
		t.Errorf("Sizes = %v", got)
	}
}

func TestJSON(t *testing.T) {
	raw, err := json.Marshal(report())
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(report(), got); d != "" {
		t.Error(d)
	}
}

func TestNumbers(t *testing.T) {
	f := func(x float64, want string) {
		t.Helper()
		if got := Ratio(x); got != want {
			t.Errorf("Ratio(%v) = %s, want %s", x, got, want)
		}
	}
	f(145.4, "145")
	f(11.04, "11.0")
	f(1.1, "1.10")
	f(0, "0.00")
	f(.0123, "0.012")
}

func TestOutput(t *testing.T) {
	text := report().Text()
	for _, want := range []string{"N = 10 ", "**p2c**", "Left out:\n  other at N = 10,000: too slow"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var b strings.Builder
	if err := report().CSV(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[1], "placement,ring,10,12.34,2.0449,0,0.034,0.01,0,4000,1.0516,0.0501,1.02,0.98,0,") {
		t.Errorf("CSV:\n%s", b.String())
	}
}

func TestCheck(t *testing.T) {
	r := report()
	r.Placements = r.Placements[:2]
	page := "<!-- peers-10 -->\n" + r.PlacementTable(10).Markdown() + "<!-- /peers-10 -->\n"
	if rows, err := r.Check([]byte(page)); rows != 1 || err != nil {
		t.Errorf("Check = %d, %v", rows, err)
	}
	f := func(page string, change func(*Report)) {
		t.Helper()
		r := report()
		r.Placements = r.Placements[:2]
		if change != nil {
			change(&r)
		}
		if rows, err := r.Check([]byte(page)); err == nil {
			t.Errorf("%d rows compared, no error", rows)
		}
	}
	f("", nil)
	f(strings.Replace(page, "1.052", "1.053", 1), nil)
	f(page, func(r *Report) { r.Placements[0].Exact.Needless = .5 })
	f(page, func(r *Report) { r.Placements[0].Subject = "ring 2" })
	f(page, func(r *Report) { r.Placements = nil })
}
