package maglev_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/maglev"
)

// names returns n ids in ascending order, with weights of 1.
func names(n int) ([]string, []uint32) {
	ids, weights := make([]string, n), make([]uint32, n)
	for i := range ids {
		ids[i], weights[i] = fmt.Sprintf("node-%05d", i), 1
	}
	return ids, weights
}

func mustBuild(t testing.TB, ids []string, weights []uint32, size uint32) []uint16 {
	t.Helper()
	entries, err := maglev.Build(ids, weights, size)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func mustUpdate(t testing.TB, prev []uint16, ids []string, weights []uint32) ([]uint16, maglev.Moves) {
	t.Helper()
	entries, moves, err := maglev.Update(prev, ids, weights)
	if err != nil {
		t.Fatal(err)
	}
	return entries, moves
}

func mustNew(t testing.TB, n int, entries []uint16) *maglev.Table {
	t.Helper()
	table, err := maglev.New(n, entries)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func counts(n int, entries []uint16) []int {
	c := make([]int, n)
	for _, e := range entries {
		if e != maglev.NoOwner {
			c[e]++
		}
	}
	return c
}

// papersFill is the fill as the paper prints it: a permutation array for each
// node, and turns in order. Only offset and skip are this project's choice.
func papersFill(ids []string, m int) []uint16 {
	permutation := make([][]int, len(ids))
	for i, id := range ids {
		h := xxhash.Sum64String(id)
		offset, skip := int(h%uint64(m)), int(splitmix.Mix(h+splitmix.Golden)%uint64(m-1))+1
		for j := range m {
			permutation[i] = append(permutation[i], (offset+j*skip)%m)
		}
	}
	entry := make([]uint16, m)
	for j := range entry {
		entry[j] = maglev.NoOwner
	}
	next := make([]int, len(ids))
	for n := 0; ; {
		for i := range ids {
			c := permutation[i][next[i]]
			for entry[c] != maglev.NoOwner {
				next[i]++
				c = permutation[i][next[i]]
			}
			entry[c] = uint16(i)
			next[i]++
			if n++; n == m {
				return entry
			}
		}
	}
}

func TestBuildIsThePapersFill(t *testing.T) {
	for _, tt := range []struct{ n, m int }{{1, 2}, {2, 2}, {1, 7}, {3, 7}, {7, 7}, {5, 251}, {250, 251}, {10, 2503}, {100, 10007}} {
		ids, weights := names(tt.n)
		got := mustBuild(t, ids, weights, uint32(tt.m))
		if d := cmp.Diff(papersFill(ids, tt.m), got); d != "" {
			t.Errorf("n=%d m=%d (-paper +got):\n%s", tt.n, tt.m, d)
		}
	}
}

// The published balance at equal weights is a matter of arithmetic: every node
// has its exact share rounded down or up.
func TestBalance(t *testing.T) {
	tests := []struct {
		size     uint32
		n        int
		peak, cv float64 // of the exact shares, as published
	}{
		{65537, 10, 1.0000, .0001}, {65537, 100, 1.0010, .0007}, {65537, 1000, 1.0071, .0076},
		{655373, 10, 1.0000, 0}, {655373, 100, 1.0000, .0001}, {655373, 1000, 1.0010, .0007},
	}
	for _, tt := range tests {
		ids, weights := names(tt.n)
		peak, cv := spread(counts(tt.n, mustBuild(t, ids, weights, tt.size)))
		if peak > tt.peak*1.01 || math.Abs(cv-tt.cv) > .001 {
			t.Errorf("M=%d N=%d: peak %.4f cv %.4f, want %.4f and %.4f", tt.size, tt.n, peak, cv, tt.peak, tt.cv)
		}
	}
}

func spread(c []int) (peak, cv float64) {
	var sum, squares, most float64
	for _, v := range c {
		sum += float64(v)
		squares += float64(v) * float64(v)
		most = max(most, float64(v))
	}
	mean := sum / float64(len(c))
	return most / mean, math.Sqrt(max(0, squares/float64(len(c))-mean*mean)) / mean
}

// Weights .25 to 8, times four: the heaviest and the lightest are equally exact.
func TestWeightedBalance(t *testing.T) {
	ids, _ := names(12)
	weights := []uint32{1, 2, 4, 8, 16, 32, 1, 2, 4, 8, 16, 32}
	for i, c := range counts(12, mustBuild(t, ids, weights, 65537)) {
		exact := 65537 * float64(weights[i]) / 126
		if math.Abs(float64(c)-exact) >= 1 {
			t.Errorf("node %d of weight %d: %d entries, exact share %.2f", i, weights[i], c, exact)
		}
	}
}

func TestRefused(t *testing.T) {
	ids, weights := names(5)
	many, manyWeights := names(20)
	tests := []struct {
		name    string
		ids     []string
		weights []uint32
		size    uint32
		want    string
	}{
		{"0", ids, weights, 0, "the next prime is 2"},
		{"1", ids, weights, 1, "the next prime is 2"},
		{"too small", ids, weights, 2, `node "node-00002" of weight 1 would own none of 2 entries; raise the weight, set it to 0, or take a table of 5`},
		{"1000", ids, weights, 1000, "the next prime is 1009"},
		{"1024", ids, weights, 1024, "the next prime is 1031"},
		{"65536", ids, weights, 65536, "the next prime is 65537"},
		{"-1", ids, weights, math.MaxUint32, "4294967295 is more than 4194301"},
		{"a large prime", ids, weights, 4294967291, "more than 4194301"},
		{"more nodes than entries", many, manyWeights, 13, "take a table of 23"},
		{"a node starves", []string{"a", "b", "c"}, []uint32{1, 1000, 1}, 101, `node "c" of weight 1 would own none of 101 entries; raise the weight, set it to 0, or take a table of 1009`},
		{"no table is large enough", []string{"a", "b", "c"}, []uint32{1, 1 << 30, 1}, 101, "no table is large enough"},
		{"order", []string{"b", "a"}, []uint32{1, 1}, 101, "strictly ascending"},
		{"duplicate", []string{"a", "a"}, []uint32{1, 1}, 101, "strictly ascending"},
		{"lengths", []string{"a"}, []uint32{1, 1}, 101, "1 ids but 2 weights"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := maglev.Build(tt.ids, tt.weights, tt.size)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNewAndUpdateRefuse(t *testing.T) {
	ids, weights := names(2)
	tests := []struct {
		name    string
		n       int
		entries []uint16
		want    string
	}{
		{"no entries", 2, nil, "not a prime"},
		{"composite", 2, make([]uint16, 4), "not a prime"},
		{"unknown node", 2, []uint16{0, 1, 2}, "entry 2 names node 2"},
		{"a hole", 2, []uint16{0, 1, maglev.NoOwner}, "entry 2 has no owner"},
		{"negative", -1, []uint16{0, 1, 1}, "-1 nodes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := maglev.New(tt.n, tt.entries); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New: error %v, want %q", err, tt.want)
			}
		})
	}
	prev := []uint16{0, 1, 2}
	if _, _, err := maglev.Update(prev, ids, weights); err == nil || !strings.Contains(err.Error(), "entry 2 names node 2") {
		t.Errorf("Update: error %v", err)
	}
	if d := cmp.Diff([]uint16{0, 1, 2}, prev); d != "" {
		t.Errorf("a refused update changed its input:\n%s", d)
	}
	if _, _, err := maglev.Update(make([]uint16, 1000), ids, weights); !errors.Is(err, maglev.ErrSize) {
		t.Errorf("Update of 1000 entries: error %v, want ErrSize", err)
	}
}

// Field case hash-07: builds that used never to end.
func TestHash07(t *testing.T) {
	five, ones := names(5)
	twenty, many := names(20)
	ten, _ := names(10)
	tests := []struct {
		name    string
		ids     []string
		weights []uint32
		size    uint32
		ok      bool
	}{
		{"M=1000", five, ones, 1000, false}, {"M=1024", five, ones, 1024, false}, {"M=65536", five, ones, 65536, false},
		{"M=0", five, ones, 0, false}, {"M=1", five, ones, 1, false}, {"M=2", five, ones, 2, false}, {"M=-1", five, ones, math.MaxUint32, false},
		{"N=20 M=13", twenty, many, 13, false},
		{"no nodes", nil, nil, 65537, true},
		{"all draining", ten, make([]uint32, 10), 65537, true},
		{"M=4294967291", ten, make([]uint32, 10), 4294967291, false},
		{"good", five, ones, 65537, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			entries, err := maglev.Build(tt.ids, tt.weights, tt.size)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			if (err == nil) != tt.ok {
				t.Fatalf("error %v, want accepted: %v", err, tt.ok)
			}
			if err != nil {
				if !errors.Is(err, maglev.ErrSize) {
					t.Errorf("error %v is not ErrSize", err)
				}
				return
			}
			table := mustNew(t, len(tt.ids), entries)
			owned := counts(len(tt.ids), entries)
			for i, w := range tt.weights {
				if (owned[i] > 0) != (w > 0) {
					t.Errorf("node %d of weight %d owns %d entries", i, w, owned[i])
				}
			}
			if got := table.Locate(1 << 60); (got >= 0) != (len(owned) > 0 && owned[0] > 0) {
				t.Errorf("Locate = %d", got)
			}
		})
	}
}

// Field case weight-04: 0 is a drain, never a crash and never 1.
func TestWeight04(t *testing.T) {
	ids := []string{"a", "b"}
	prev := mustBuild(t, ids, []uint32{1, 1}, 65537)
	drained, moves := mustUpdate(t, prev, ids, []uint32{1, 0})
	if had := counts(2, prev)[1]; moves.Moved != had || moves.Bound != had {
		t.Errorf("moves %+v, want exactly b's %d entries", moves, had)
	}
	if got := counts(2, drained)[1]; got != 0 {
		t.Errorf("b owns %d entries", got)
	}
	table := mustNew(t, 2, drained)
	if got := table.AppendReplicas(nil, 42, 2); !cmp.Equal(got, []int{0}) {
		t.Errorf("2 replicas: %v, want a alone", got)
	}
	none, moves := mustUpdate(t, drained, ids, []uint32{0, 0})
	if moves != (maglev.Moves{}) {
		t.Errorf("all zero: moves %+v", moves)
	}
	table = mustNew(t, 2, none)
	if got := table.Locate(42); got != -1 {
		t.Errorf("all zero: owner %d", got)
	}
	if got := table.AppendReplicas(nil, 42, 2); len(got) != 0 {
		t.Errorf("all zero: replicas %v", got)
	}
}

func TestNextPrime(t *testing.T) {
	for n, want := range map[uint32]uint32{0: 2, 2: 2, 3: 3, 4: 5, 1000: 1009, 65536: 65537, maglev.MaxSize: maglev.MaxSize,
		4294967291: 4294967291, 4294967292: 0} {
		if got := maglev.NextPrime(n); got != want {
			t.Errorf("NextPrime(%d) = %d, want %d", n, got, want)
		}
	}
	if maglev.NextPrime(maglev.MaxSize+1) < 1<<22 {
		t.Error("MaxSize is not the largest prime below 2^22")
	}
}

func ExampleUpdate() {
	entries, _ := maglev.Build([]string{"a", "b", "c"}, []uint32{1, 1, 1}, maglev.DefaultSize)
	// Node b leaves: express the entries as indices into the new list.
	remaining := map[uint16]uint16{0: 0, 1: maglev.NoOwner, 2: 1}
	for i, e := range entries {
		entries[i] = remaining[e]
	}
	entries, moves, _ := maglev.Update(entries, []string{"a", "c"}, []uint32{1, 1})
	table, _ := maglev.New(2, entries)
	fmt.Println(moves.Moved, "of", table.Size(), "entries moved; at least", moves.Bound, "had to")
	fmt.Println("owner of a key:", table.Locate(0x9ddfea08eb382d69))
	// Output:
	// 21846 of 65537 entries moved; at least 21846 had to
	// owner of a key: 1
}

func TestEntries(t *testing.T) {
	entries := mustBuild(t, []string{"a", "b", "c"}, []uint32{1, 0, 2}, 13)
	table := mustNew(t, 3, entries)
	got := table.Entries()
	if !slices.Equal(got, entries) {
		t.Errorf("entries %v, want %v", got, entries)
	}
	got[0] = 1
	if table.Locate(0) != int(entries[0]) {
		t.Error("the table changed with its copy")
	}
	nobody := mustNew(t, 3, mustBuild(t, []string{"a", "b", "c"}, []uint32{0, 0, 0}, 13))
	if e := nobody.Entries(); e[5] != maglev.NoOwner {
		t.Errorf("an entry of nobody is %d", e[5])
	}
}
