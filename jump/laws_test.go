package jump_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/jump"
)

var variants = []jump.Variant{jump.Classic, jump.Back}

// sharesOf returns the share of buckets of each of n nodes.
func sharesOf(n int, b jump.Buckets) []float64 {
	share, live := make([]float64, n), 0
	for _, o := range b.Owner {
		if o != hole {
			share[o]++
			live++
		}
	}
	for i := range share {
		share[i] /= float64(max(1, live))
	}
	return share
}

// minimum is sum max(0, q - p).
func minimum(p, q []float64) float64 {
	sum := 0.0
	for i := range p {
		sum += max(0, q[i]-p[i])
	}
	return sum
}

// Any change of one node moves the minimum, and keys only to or from it.
func TestOneNodeLaw(t *testing.T) {
	hs := hashes(1, 400)
	rapid.Check(t, func(t *rapid.T) {
		ids, _ := names(rapid.IntRange(1, 9).Draw(t, "nodes"))
		weight := rapid.SampledFrom([]uint32{0, 1, 1, 2, 3})
		draw := func() []uint32 {
			w := make([]uint32, len(ids))
			for i := range w {
				w[i] = weight.Draw(t, "weight")
			}
			return w
		}
		unit := rapid.Uint32Range(1, 3).Draw(t, "unit")
		var b jump.Buckets
		var weights []uint32
		for range rapid.IntRange(1, 4).Draw(t, "changes before") { // a past with holes
			weights = draw()
			b = lawfulUpdate(t, b, ids, weights, unit)
		}
		i := rapid.IntRange(0, len(ids)-1).Draw(t, "node")
		weights[i] = weight.Draw(t, "new weight")
		next := lawfulUpdate(t, b, ids, weights, unit)
		p, q := sharesOf(len(ids), b), sharesOf(len(ids), next)
		if got, want := jump.Movement(b, next), minimum(p, q); math.Abs(got-want) > 1e-12 && !empty(b) && !empty(next) {
			t.Fatalf("node %d changes: moved %v, minimum %v", i, got, want)
		}
		for _, v := range variants {
			from, to := newTable(t, len(ids), b, v), newTable(t, len(ids), next, v)
			for _, h := range hs {
				o, n := from.Locate(h), to.Locate(h)
				if o != n && (o != i && n != i || p[i] > q[i] && o != i || p[i] < q[i] && n != i) {
					t.Fatalf("variant %d: node %d went from %v to %v, and hash %#x from node %d to %d", v, i, p[i], q[i], h, o, n)
				}
			}
		}
	})
}

func empty(b jump.Buckets) bool {
	return !slices.ContainsFunc(b.Owner, func(o uint16) bool { return o != hole })
}

func newTable(t rapid.TB, n int, b jump.Buckets, v jump.Variant) *jump.Table {
	table, err := jump.New(n, b, v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return table
}

// lawfulUpdate checks what holds for any update: whole buckets by weight, no
// bucket changes without need, a second plan is empty.
func lawfulUpdate(t rapid.TB, prev jump.Buckets, ids []string, weights []uint32, unit uint32) jump.Buckets {
	t.Helper()
	next, moves, err := jump.Update(prev, ids, weights, unit)
	if err != nil {
		t.Fatalf("%v", err)
	}
	count, before := make([]int, len(ids)), make([]int, len(ids))
	for b, o := range next.Owner {
		if o != hole {
			count[o]++
		}
		if o != hole && next.Last[b] != hole {
			t.Fatalf("bucket %d has an owner and a former holder", b)
		}
	}
	lost, gained := 0, 0
	for b, o := range prev.Owner {
		if o != hole {
			before[o]++
		}
		if o != hole && (b >= len(next.Owner) || next.Owner[b] != o) {
			lost++
		}
	}
	for b, o := range next.Owner {
		if o != hole && (b >= len(prev.Owner) || prev.Owner[b] != o) {
			gained++
		}
	}
	wantLost, wantGained := 0, 0
	for i, w := range weights {
		if count[i] != int(w*unit) {
			t.Fatalf("node %d of weight %d has %d buckets at unit %d", i, w, count[i], unit)
		}
		wantLost += max(0, before[i]-count[i])
		wantGained += max(0, count[i]-before[i])
	}
	if lost != wantLost || gained != wantGained || moves.Lost != lost || moves.Gained != gained {
		t.Fatalf("lost %d of %d, gained %d of %d, reported %+v", lost, wantLost, gained, wantGained, moves)
	}
	again, none, err := jump.Update(next, ids, weights, unit)
	if err != nil || none != (jump.Moves{}) || !cmp.Equal(again, next) {
		t.Fatalf("the same nodes again: moves %+v, error %v", none, err)
	}
	return next
}

// The formula of Movement against keys, for any two arrays, neighbours or not.
func TestMovementIsWhatKeysDo(t *testing.T) {
	tests := []struct {
		name       string
		prev, next jump.Buckets
		want       float64 // 0: not published
	}{
		{"one more node of five", buckets("abcde", "....."), buckets("abcdef", "......"), .166667},
		{"two more buckets", buckets("aabb", "...."), buckets("aabbbc", "......"), .25},
		{"weight doubled, of 20", buckets("abcdefghijklmnopqrst", "...................."), buckets("abcdefghijklmnopqrsta", "....................."), .045238},
		{"one leaves", buckets("abcd", "...."), buckets("a.cd", ".b.."), .25},
		{"handed over", buckets("abcd", "...."), buckets("aecd", "...."), .25},
		{"holes on both sides", buckets("a.c..f", "......"), buckets(".bc.e.", "......"), 0},
		{"shrunk past a hole", buckets("ab.c", "...."), buckets("ab.", "..."), 0},
		{"a hole beyond the end", buckets("abc", "..."), buckets("abc..", "....."), 0},
		{"holes and more beyond the end", buckets("a.c", "..."), buckets("abc.d.e", "......."), 0},
		{"nothing in common", buckets("aa", ".."), buckets("bbb", "..."), 1},
	}
	hs := hashes(7, 200_000)
	for _, tt := range tests {
		for _, v := range variants {
			t.Run(fmt.Sprintf("%s/%d", tt.name, v), func(t *testing.T) {
				law := jump.Movement(tt.prev, tt.next)
				if back := jump.Movement(tt.next, tt.prev); math.Abs(back-law) > 1e-12 {
					t.Errorf("%v there, %v back", law, back)
				}
				if tt.want > 0 && math.Abs(law-tt.want) > 1e-6 {
					t.Errorf("Movement = %v, want %v", law, tt.want)
				}
				from, to := mustNew(t, 26, tt.prev, v), mustNew(t, 26, tt.next, v)
				moved := 0
				for _, h := range hs {
					if from.Locate(h) != to.Locate(h) {
						moved++
					}
				}
				got := float64(moved) / float64(len(hs))
				if sigma := math.Sqrt(law * (1 - law) / float64(len(hs))); math.Abs(got-law) > 4*sigma+1e-9 {
					t.Errorf("%d of %d keys moved: %.5f, law %.5f +- %.5f", moved, len(hs), got, law, sigma)
				}
			})
		}
	}
	none := jump.Buckets{}
	if got := jump.Movement(none, buckets("a", ".")); got != 1 {
		t.Errorf("from nothing: %v", got)
	}
	if got := jump.Movement(none, none); got != 0 {
		t.Errorf("from nothing to nothing: %v", got)
	}
}

// Three hundred changes of one node each: exactly the minimum.
func TestThreeHundredChanges(t *testing.T) {
	ids, weights := names(60)
	b := mustBuild(t, ids, weights, 4)
	moved, least := 0.0, 0.0
	for step, h := range hashes(11, 300) {
		weights[h%60] = uint32(h>>32) % 4
		next := lawfulUpdate(t, b, ids, weights, 4)
		moved += jump.Movement(b, next)
		least += minimum(sharesOf(60, b), sharesOf(60, next))
		if math.Abs(moved-least) > 1e-9 {
			t.Fatalf("step %d: %v moved, minimum %v", step, moved, least)
		}
		b = next
	}
	t.Logf("%.4f key spaces moved, minimum %.4f, %d buckets", moved, least, b.Len())
}

// A node that was away, and others too, gets every key of its former buckets back.
func TestReturn(t *testing.T) {
	ids, weights := names(10)
	full := mustBuild(t, ids, weights, 2)
	weights[3] = 0
	b, _ := mustUpdate(t, full, ids, weights, 2)
	weights[5] = 0
	b, _ = mustUpdate(t, b, ids, weights, 2)
	weights[3] = 1
	b, _ = mustUpdate(t, b, ids, weights, 2)
	for _, v := range variants {
		before, after := mustNew(t, 10, full, v), mustNew(t, 10, b, v)
		for _, h := range hashes(5, 5000) {
			if before.Locate(h) == 3 && after.Locate(h) != 3 {
				t.Fatalf("variant %d: hash %#x was node 3's and is now node %d's", v, h, after.Locate(h))
			}
		}
	}
}

func TestReplicaLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, _ := names(rapid.IntRange(0, 8).Draw(t, "nodes"))
		weights := make([]uint32, len(ids))
		owners := 0
		for i := range weights {
			if weights[i] = rapid.SampledFrom([]uint32{0, 1, 1, 2, 300}).Draw(t, "weight"); weights[i] > 0 {
				owners++
			}
		}
		b := lawfulUpdate(t, jump.Buckets{}, ids, weights, 1)
		if rapid.Bool().Draw(t, "holes") && len(ids) > 0 {
			i := rapid.IntRange(0, len(ids)-1).Draw(t, "gone")
			if weights[i] > 0 {
				owners--
			}
			weights[i] = 0
			b = lawfulUpdate(t, b, ids, weights, 1)
		}
		for _, v := range variants {
			checkOrder(t, newTable(t, len(ids), b, v), rapid.Uint64().Draw(t, "hash"), owners, weights)
		}
	})
}

// checkOrder: the order begins with the owner, names each owner once, and a
// shorter list is the beginning of a longer one.
func checkOrder(t rapid.TB, table *jump.Table, h uint64, owners int, weights []uint32) {
	t.Helper()
	all := table.AppendReplicas([]int{-7}, h, 1<<20)[1:]
	if len(all) != owners || table.Len() != len(weights) {
		t.Fatalf("%d replicas of %d owners", len(all), owners)
	}
	sorted := slices.Sorted(slices.Values(all))
	if len(slices.Compact(sorted)) != owners {
		t.Fatalf("order %v names a node twice", all)
	}
	for _, o := range all {
		if weights[o] == 0 {
			t.Fatalf("order %v names node %d of weight 0", all, o)
		}
	}
	want := -1
	if owners > 0 {
		want = all[0]
	}
	batch := make([]int, 5)
	table.LocateBatch(batch, []uint64{h, h, h, h, h})
	if got := table.Locate(h); got != want || slices.ContainsFunc(batch, func(o int) bool { return o != want }) {
		t.Fatalf("Locate = %d, in a batch %v, order %v", got, batch, all)
	}
	for n := range owners + 1 {
		if got := table.AppendReplicas(nil, h, n); !slices.Equal(got, all[:n]) {
			t.Fatalf("%d replicas %v, order %v", n, got, all)
		}
	}
}

// Nearly all buckets are holes, so that most keys come to the completion. It
// keeps the law: one bucket more or less changes an order by its node only, and
// the few nodes share the keys evenly.
func TestNearlyAllHoles(t *testing.T) {
	const n = 20_000
	sparse := jump.Buckets{Owner: slices.Repeat([]uint16{hole}, n), Last: slices.Repeat([]uint16{hole}, n)}
	for i := range 40 {
		sparse.Owner[i*397+11] = uint16(i)
	}
	less := jump.Buckets{Owner: slices.Clone(sparse.Owner), Last: sparse.Last}
	less.Owner[7*397+11] = hole
	for _, v := range variants {
		with, without := mustNew(t, 40, sparse, v), mustNew(t, 40, less, v)
		count := make([]int, 40)
		for _, h := range hashes(9, 4000) {
			a, b := with.AppendReplicas(nil, h, 40), without.AppendReplicas(nil, h, 40)
			if with.Locate(h) != a[0] || without.Locate(h) != b[0] {
				t.Fatalf("variant %d: Locate %d and %d, orders %v and %v", v, with.Locate(h), without.Locate(h), a, b)
			}
			count[a[0]]++
			if got := slices.DeleteFunc(slices.Clone(a), func(o int) bool { return o == 7 }); !slices.Equal(got, b) {
				t.Fatalf("variant %d: without node 7 the order %v becomes %v", v, a, b)
			}
			for _, r := range []int{2, 5, 33} {
				if got := with.AppendReplicas(nil, h, r); !slices.Equal(got, a[:r]) {
					t.Fatalf("variant %d: %d replicas %v, order %v", v, r, got, a)
				}
			}
		}
		for i, c := range count {
			if c < 50 || c > 160 { // 100 +- 10
				t.Errorf("variant %d: node %d got %d of 4000 keys, want about 100", v, i, c)
			}
		}
	}
}

func TestReplicasDoNotAllocate(t *testing.T) {
	ids, weights := names(100)
	weights[0] = 10_000 // so that the others are hard to meet
	table := mustNew(t, 100, mustBuild(t, ids, weights, 1), jump.Classic)
	dst := make([]int, 0, 100)
	for _, n := range []int{1, 3, 32} {
		if got := testing.AllocsPerRun(20, func() { dst = table.AppendReplicas(dst[:0], 77, n) }); got != 0 {
			t.Errorf("%d replicas: %v allocations", n, got)
		}
	}
}

func TestManyNodes(t *testing.T) {
	ids, weights := names(10_000)
	b := mustBuild(t, ids, weights, 16)
	weights[5000] = 0
	next := lawfulUpdate(t, b, ids, weights, 16)
	if got := jump.Movement(b, next); math.Abs(got-1e-4) > 1e-12 {
		t.Errorf("one of 10,000 leaves: %v moved", got)
	}
	table := mustNew(t, 10_000, next, jump.Back)
	for _, h := range hashes(2, 10_000) {
		if o := table.Locate(h); o < 0 || o == 5000 {
			t.Fatalf("owner %d", o)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte{0, 255, 1, 255, 255, 0}, uint8(2), uint8(1))
	f.Add([]byte{}, uint8(0), uint8(0))
	f.Add([]byte{3, 3}, uint8(4), uint8(16))
	f.Fuzz(func(t *testing.T, raw []byte, n, unit uint8) {
		var b jump.Buckets
		for i := 0; i+1 < len(raw); i += 2 {
			b.Owner, b.Last = append(b.Owner, fuzzEntry(raw[i])), append(b.Last, fuzzEntry(raw[i+1]))
		}
		ids, weights := names(int(n))
		if _, _, err := jump.Update(b, ids, weights, uint32(unit)); err == nil {
			lawfulUpdate(t, b, ids, weights, uint32(unit))
		}
		table, err := jump.New(int(n), b, jump.Classic)
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

func fuzzEntry(b byte) uint16 {
	if b == 255 {
		return hole
	}
	return uint16(b)
}
