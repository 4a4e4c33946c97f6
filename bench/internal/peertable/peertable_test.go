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
