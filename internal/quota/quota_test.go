package quota_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/internal/quota"
)

func TestRound(t *testing.T) {
	tests := []struct {
		name    string
		total   int
		weights []uint32
		old     []int
		want    []int
	}{
		{"even", 12, []uint32{1, 1, 2}, nil, []int{3, 3, 6}},
		{"largest fraction", 10, []uint32{1, 1, 4}, nil, []int{2, 2, 6}}, // 1.67 1.67 6.67: tie goes by index
		{"old above its floor first", 10, []uint32{1, 1, 1}, []int{3, 3, 4}, []int{3, 3, 4}},
		{"whole shares get no unit", 10, []uint32{5, 3, 2}, []int{6, 2, 2}, []int{5, 3, 2}},
		{"none before old and fraction", 10, []uint32{1, 50, 49}, []int{0, 6, 4}, []int{1, 5, 4}}, // .1 5 4.9
		{"zero weight", 7, []uint32{0, 1, 0}, []int{3, 4, 0}, []int{0, 7, 0}},
		{"no weight", 0, []uint32{0, 0}, []int{3, 4}, []int{0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := quota.Round(quota.Proportional(tt.total, tt.weights), tt.total, quota.Given{Old: tt.old})
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("quotas (-want +got):\n%s", d)
			}
		})
	}
}

func TestRoundTies(t *testing.T) {
	shares := quota.Proportional(10, []uint32{1, 1, 1, 1})
	got := quota.Round(shares, 10, quota.Given{Old: []int{3, 2, 2, 3}, Tie: []int{-1, 1, 0, 0}})
	if d := cmp.Diff([]int{3, 2, 2, 3}, got); d != "" { // what is held goes before the tie
		t.Errorf("quotas (-want +got):\n%s", d)
	}
	got = quota.Round(shares, 10, quota.Given{Tie: []int{-1, 0, 1, 0}})
	if d := cmp.Diff([]int{2, 3, 3, 2}, got); d != "" {
		t.Errorf("quotas (-want +got):\n%s", d)
	}
}

// Group 0 has four shares of 1.5, group 1 five of 1.4: by fraction alone group 0
// would get all four units and hold 8, though its share is 6.
func TestRoundWithinGroups(t *testing.T) {
	shares := make([]quota.Share, 9)
	group := make([]uint16, 9)
	for i := range shares {
		shares[i] = quota.Share{Num: 3, Den: 2}
		if i >= 4 {
			shares[i], group[i] = quota.Share{Num: 7, Den: 5}, 1
		}
	}
	got := quota.Round(shares, 13, quota.Given{Group: group, Bounds: []quota.Bounds{{Lo: 6, Hi: 6}, {Lo: 7, Hi: 7}}})
	if d := cmp.Diff([]int{2, 2, 1, 1, 2, 2, 1, 1, 1}, got); d != "" {
		t.Errorf("quotas (-want +got):\n%s", d)
	}
}

// Whatever the weights and the earlier counts: quotas add up, each is the exact
// share rounded down or up, and no other such rounding is closer to old.
func TestRoundIsNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint32Range(0, 50), 1, 7).Draw(t, "weights")
		weights[0]++
		total := rapid.IntRange(7, 60).Draw(t, "total")
		old := make([]int, len(weights))
		for range total {
			old[rapid.IntRange(0, len(old)-1).Draw(t, "holder")]++
		}
		shares := quota.Proportional(total, weights)
		// A node below one unit is served first whatever it costs: leave those out.
		for i, s := range shares {
			if weights[i] > 0 && s.Num < s.Den {
				t.Skip("starving node")
			}
		}
		q := quota.Round(shares, total, quota.Given{Old: old})
		sum := 0
		for i, s := range shares {
			sum += q[i]
			if s.Den > 0 && (uint64(q[i]) < s.Num/s.Den || uint64(q[i]) > (s.Num+s.Den-1)/s.Den) {
				t.Fatalf("node %d: quota %d for share %d/%d", i, q[i], s.Num, s.Den)
			}
		}
		if sum != total {
			t.Fatalf("quotas %v add up to %d, not %d", q, sum, total)
		}
		if best := cheapest(shares, total, old, 0, nil); quota.Bound(q, old) != best {
			t.Fatalf("quotas %v move %d from %v; %d is possible", q, quota.Bound(q, old), old, best)
		}
	})
}

// cheapest tries every rounding.
func cheapest(shares []quota.Share, left int, old []int, i int, q []int) int {
	if i == len(shares) {
		if left != 0 {
			return 1 << 30
		}
		return quota.Bound(q, old)
	}
	var floor, up int
	if s := shares[i]; s.Den > 0 {
		floor, up = int(s.Num/s.Den), int((s.Num+s.Den-1)/s.Den)
	}
	best := cheapest(shares, left-floor, old, i+1, append(q, floor))
	if up != floor {
		best = min(best, cheapest(shares, left-up, old, i+1, append(q, up)))
	}
	return best
}

func TestCheckNodes(t *testing.T) {
	tests := []struct {
		name    string
		ids     []string
		weights []uint32
		want    string
	}{
		{"good", []string{"a", "b"}, []uint32{1, 0}, ""},
		{"none", nil, nil, ""},
		{"lengths", []string{"a"}, nil, "p: 1 ids but 0 weights"},
		{"duplicate", []string{"a", "a"}, []uint32{1, 1}, `ids[1] = "a" follows "a"`},
		{"order", []string{"b", "a"}, []uint32{1, 1}, `ids[1] = "a" follows "b"`},
		{"many", make([]string, quota.MaxNodes+1), make([]uint32, quota.MaxNodes+1), "more than 65534"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := quota.CheckNodes("p", tt.ids, tt.weights)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckEntriesAndStarved(t *testing.T) {
	if err := quota.CheckEntries("p", 2, []uint16{0, 1, quota.NoOwner}); err != nil {
		t.Error(err)
	}
	if err := quota.CheckEntries("p", 2, []uint16{0, 2}); err == nil {
		t.Error("entry 1 names node 2 of 2: no error")
	}
	if i, ok := quota.Starved([]int{1, 0, 0}, []uint32{1, 0, 1}); i != 2 || !ok {
		t.Errorf("Starved = %d, %v", i, ok)
	}
}
