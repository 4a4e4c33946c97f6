package maglev_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/internal/quota"
	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/maglev"
)

// fleet is a table with its nodes, changed step by step as a topology is.
type fleet struct {
	ids     []string
	weights []uint32
	entries []uint16
}

func newFleet(t testing.TB, n int, size uint32) *fleet {
	ids, weights := names(n)
	return &fleet{ids: ids, weights: weights, entries: mustBuild(t, ids, weights, size)}
}

// change moves to other nodes and checks the law of Update.
func (f *fleet) change(t rapid.TB, ids []string, weights []uint32) maglev.Moves {
	t.Helper()
	prev := renumber(f.entries, f.ids, ids)
	before := slices.Clone(prev)
	entries, moves, err := maglev.Update(prev, ids, weights)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !slices.Equal(before, prev) {
		t.Fatalf("Update changed its input")
	}
	checkUpdate(t, prev, entries, weights, moves)
	f.ids, f.weights, f.entries = ids, weights, entries
	return moves
}

// renumber expresses entries as indices into the new ids.
func renumber(entries []uint16, from, to []string) []uint16 {
	index := make([]uint16, len(from))
	for i, id := range from {
		index[i] = maglev.NoOwner
		if j, ok := slices.BinarySearch(to, id); ok {
			index[i] = uint16(j)
		}
	}
	out := make([]uint16, len(entries))
	for i, e := range entries {
		out[i] = maglev.NoOwner
		if e != maglev.NoOwner {
			out[i] = index[e]
		}
	}
	return out
}

func checkUpdate(t rapid.TB, prev, next []uint16, weights []uint32, moves maglev.Moves) {
	t.Helper()
	n := len(weights)
	old, now := counts(n, prev), counts(n, next)
	shares := quota.Proportional(len(prev), weights)
	weighted := slices.ContainsFunc(weights, func(w uint32) bool { return w > 0 })
	moved, bound := 0, quota.Bound(now, old)
	for i, w := range weights {
		if floor, up := shareBounds(shares[i]); now[i] < floor || now[i] > up || w > 0 && now[i] == 0 {
			t.Fatalf("node %d of weight %d: %d entries, want %d or %d", i, w, now[i], floor, up)
		}
	}
	for e := range prev {
		if weighted && next[e] == maglev.NoOwner {
			t.Fatalf("entry %d has no owner", e)
		}
		if prev[e] != next[e] && weighted {
			moved++
			// Only a node above its quota, or gone, loses; only one below gains.
			if o := prev[e]; o != maglev.NoOwner && old[o] <= now[o] {
				t.Fatalf("entry %d left node %d, which holds %d after %d", e, o, now[o], old[o])
			}
		}
	}
	if moved != moves.Moved || moved != moves.Bound || moved != bound {
		t.Fatalf("moved %d, reported %+v, sum max(0, q - old) = %d", moved, moves, bound)
	}
}

func shareBounds(s quota.Share) (floor, up int) {
	if s.Den == 0 {
		return 0, 0
	}
	return int(s.Num / s.Den), int((s.Num + s.Den - 1) / s.Den)
}

// Add, remove, reweight and replace, at random, 300 in all: each moves exactly
// its bound, and nothing else.
func TestThreeHundredChanges(t *testing.T) {
	for _, size := range []uint32{2503, 65537} {
		f := newFleet(t, 100, size)
		rng := splitmix.Source(size)
		moved, bound := 0, 0
		for step := range 300 {
			ids, weights := randomChange(&rng, f.ids, f.weights, step)
			m := f.change(t, ids, weights)
			moved, bound = moved+m.Moved, bound+m.Bound
		}
		t.Logf("M=%d: %.4f key spaces moved, bound %.4f", size, float64(moved)/float64(size), float64(bound)/float64(size))
		if moved != bound {
			t.Errorf("M=%d: moved %d, bound %d", size, moved, bound)
		}
	}
}

func randomChange(rng *splitmix.Source, ids []string, weights []uint32, step int) ([]string, []uint32) {
	ids, weights = slices.Clone(ids), slices.Clone(weights)
	at := int(rng.Below(uint64(len(ids))))
	fresh := "new-" + string(rune('a'+step%26)) + string(rune('a'+step/26))
	switch op := rng.Below(4); {
	case op == 0 && len(ids) > 60, op == 3: // remove; replace
		ids, weights = slices.Delete(ids, at, at+1), slices.Delete(weights, at, at+1)
		if op == 0 {
			return ids, weights
		}
		fallthrough
	case op == 1: // add
		at, _ := slices.BinarySearch(ids, fresh)
		return slices.Insert(ids, at, fresh), slices.Insert(weights, at, 1+uint32(rng.Below(3)))
	default: // reweight
		weights[at] = uint32(rng.Below(4))
		return ids, weights
	}
}

func TestUpdateLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]uint32{101, 251, 1009}).Draw(t, "size")
		id := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-d]{1,4}`), 0, 12, rapid.ID[string])
		weight := rapid.SampledFrom([]uint32{0, 1, 1, 2, 5})
		f := &fleet{entries: slices.Repeat([]uint16{maglev.NoOwner}, int(size))}
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			ids := id.Draw(t, "ids")
			slices.Sort(ids)
			weights := make([]uint32, len(ids))
			for i := range weights {
				weights[i] = weight.Draw(t, "weight")
			}
			f.change(t, ids, weights)
			// A second plan is empty.
			if again := f.change(t, ids, weights); again.Moved != 0 {
				t.Fatalf("the same nodes again moved %d entries", again.Moved)
			}
			checkReplicas(t, f, rapid.Uint64().Draw(t, "hash"))
		}
	})
}

// checkReplicas: the order begins with the owner, names each owner once, and a
// shorter list is the beginning of a longer one.
func checkReplicas(t *rapid.T, f *fleet, h uint64) {
	table, err := maglev.New(len(f.ids), f.entries)
	if err != nil {
		t.Fatal(err)
	}
	owners := 0
	for _, w := range f.weights {
		if w > 0 {
			owners++
		}
	}
	all := table.AppendReplicas([]int{-7}, h, 1<<20)[1:]
	if len(all) != owners {
		t.Fatalf("%d replicas of %d owners", len(all), owners)
	}
	seen := map[int]bool{}
	for _, o := range all {
		if seen[o] || f.weights[o] == 0 {
			t.Fatalf("order %v: node %d twice or of weight 0", all, o)
		}
		seen[o] = true
	}
	if owners == 0 {
		if got := table.Locate(h); got != -1 {
			t.Fatalf("Locate = %d without owners", got)
		}
		return
	}
	if got := table.Locate(h); got != all[0] {
		t.Fatalf("Locate = %d, order %v", got, all)
	}
	for n := range owners + 1 {
		if got := table.AppendReplicas(nil, h, n); !slices.Equal(got, all[:n]) {
			t.Fatalf("%d replicas %v, order %v", n, got, all)
		}
	}
}

// More replicas than are looked for among those found take the other path.
func TestManyReplicas(t *testing.T) {
	f := newFleet(t, 300, 65537)
	table := mustNew(t, 300, f.entries)
	for _, h := range []uint64{0, 1 << 63, ^uint64(0), 0x123456789abcdef} {
		all := table.AppendReplicas(nil, h, 300)
		for _, n := range []int{1, 31, 32, 33, 64, 299} {
			if d := cmp.Diff(all[:n], table.AppendReplicas(nil, h, n)); d != "" {
				t.Errorf("h=%x n=%d (-prefix +got):\n%s", h, n, d)
			}
		}
		slices.Sort(all)
		if len(slices.Compact(all)) != 300 {
			t.Errorf("h=%x: not all nodes, or one twice", h)
		}
	}
}

func TestReplicasDoNotAllocate(t *testing.T) {
	f := newFleet(t, 100, 65537)
	table := mustNew(t, 100, f.entries)
	dst := make([]int, 0, 100)
	for _, n := range []int{1, 3, 32, 100} {
		if got := testing.AllocsPerRun(100, func() { dst = table.AppendReplicas(dst[:0], 77, n) }); got != 0 {
			t.Errorf("%d replicas: %v allocations", n, got)
		}
	}
}

// Ten thousand nodes, and as many nodes as fit.
func TestManyNodes(t *testing.T) {
	f := newFleet(t, 10_000, 65537)
	ids, weights := slices.Delete(slices.Clone(f.ids), 5000, 5001), f.weights[1:]
	f.change(t, ids, weights)

	f = newFleet(t, quota.MaxNodes, 65537)
	mustNew(t, quota.MaxNodes, f.entries)
	f.change(t, f.ids[1:], f.weights[1:])
}

// One node of half of all weight beside many light ones: as many rounds as
// entries, and no hang.
func TestSkewedWeights(t *testing.T) {
	ids, weights := names(30_000)
	weights[7] = 30_000
	entries := mustBuild(t, ids, weights, 65537)
	if c := counts(len(ids), entries); c[7] < 32767 || c[7] > 32770 {
		t.Errorf("the heavy node owns %d entries of 65537, want half", c[7])
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte{0, 1, 2}, uint8(3))
	f.Add([]byte{0, 255, 0, 255, 1}, uint8(2))
	f.Add([]byte{}, uint8(0))
	f.Add([]byte{9, 9, 9, 9}, uint8(1))
	f.Fuzz(func(t *testing.T, raw []byte, n uint8) {
		entries := make([]uint16, len(raw))
		for i, b := range raw {
			if entries[i] = uint16(b); b == 255 {
				entries[i] = maglev.NoOwner
			}
		}
		ids, weights := names(int(n))
		if next, moves, err := maglev.Update(entries, ids, weights); err == nil && n > 0 {
			checkUpdate(t, entries, next, weights, moves)
		}
		table, err := maglev.New(int(n), entries)
		if err != nil {
			return
		}
		for _, o := range table.AppendReplicas(nil, 1<<62, 300) {
			if o < 0 || o >= int(n) {
				t.Fatalf("replica %d of %d nodes", o, n)
			}
		}
	})
}
