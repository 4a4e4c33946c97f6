package ring_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/ring"
)

func TestNewRefuses(t *testing.T) {
	many := floorbench.Names(ring.MaxNodes + 1)
	for _, c := range []struct {
		name    string
		ids     []string
		weights []uint32
		vnodes  uint32
		want    error
		says    string
	}{
		{"not sorted", []string{"b", "a"}, []uint32{1, 1}, 160, ring.ErrOrder, `"b" at 0 is followed by "a"`},
		{"twice", []string{"a", "b", "b"}, []uint32{1, 1, 1}, 160, ring.ErrOrder, `"b" at 1`},
		{"no vnodes", []string{"a"}, []uint32{1}, 0, ring.ErrInput, "160 is usual"},
		{"lengths", []string{"a"}, nil, 160, ring.ErrInput, "1 ids and 0 weights"},
		{"nodes", many, floorbench.Weights(len(many)), 1, ring.ErrTooManyNodes, "65535, at most 65534"},
		{"points", []string{"a", "b"}, []uint32{26214, 1}, 160, ring.ErrTooManyPoints, "4194400 points"},
		{"points", []string{"a", "b"}, []uint32{26214, 1}, 160, ring.ErrTooManyPoints, "at most 4194304"},
		{"2^64 points", []string{"a", "b", "c", "d"}, []uint32{1 << 31, 1 << 31, 1 << 31, 1 << 31}, 1 << 31, ring.ErrTooManyPoints, "points"},
		{"overflow", []string{"a", "b", "c"}, []uint32{math.MaxUint32, math.MaxUint32, 2}, math.MaxUint32, ring.ErrTooManyPoints, "points"},
	} {
		r, err := ring.New(c.ids, c.weights, c.vnodes)
		if r != nil || !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v, %v; want %v that says %q", c.name, r, err, c.want, c.says)
		}
	}
	r := mustNew(t, []string{"a"}, []uint32{1}, 160)
	if _, err := r.Update([]string{"b", "a"}, []uint32{1, 1}); !errors.Is(err, ring.ErrOrder) {
		t.Errorf("Update: %v, want ErrOrder", err)
	}
}

func TestLimitOfPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("4 million points")
	}
	r := mustNew(t, []string{"a", "b"}, []uint32{1 << 12, 3 << 12}, 1<<8)
	if r.NumPoints() != ring.MaxPoints {
		t.Errorf("%d points, want %d", r.NumPoints(), ring.MaxPoints)
	}
	for _, h := range hashes(1000) {
		got := r.Locate(h)
		if want := r.AppendReplicas(nil, h, 1)[0]; got != want {
			t.Errorf("Locate(%x) = %d, first replica %d", h, got, want)
		}
	}
}

// Nobody owns anything: no nodes, or weight 0 only. Every lookup says so.
func TestNobody(t *testing.T) {
	for _, r := range []*ring.Ring{
		mustNew(t, nil, nil, 160),
		mustNew(t, []string{"a", "b"}, []uint32{0, 0}, 160),
	} {
		for _, h := range []uint64{0, 1, math.MaxUint64, 1 << 63} {
			if got := r.Locate(h); got != -1 {
				t.Errorf("%d nodes: Locate(%x) = %d, want -1", r.Len(), h, got)
			}
			if got := r.AppendReplicas(nil, h, 3); len(got) != 0 {
				t.Errorf("%d nodes: replicas %v, want none", r.Len(), got)
			}
		}
		if r.Owners() != 0 || r.NumPoints() != 0 {
			t.Errorf("%d owners, %d points, want none", r.Owners(), r.NumPoints())
		}
	}
}

func TestOneNode(t *testing.T) {
	for _, vnodes := range []uint32{1, 160} {
		r := mustNew(t, []string{"a", "b", "c"}, []uint32{0, 1, 0}, vnodes)
		for _, h := range append(hashes(1000), 0, math.MaxUint64) {
			if got := r.Locate(h); got != 1 {
				t.Fatalf("Locate(%x) = %d, want 1", h, got)
			}
			if diff := cmp.Diff([]int{1}, r.AppendReplicas(nil, h, 3)); diff != "" {
				t.Fatalf("replicas: -want +got:\n%s", diff)
			}
		}
	}
}

func TestTenThousandNodes(t *testing.T) {
	ids := floorbench.Names(10000)
	r := mustNew(t, ids, floorbench.Weights(len(ids)), 40)
	owns := make([]bool, len(ids))
	for _, owner := range r.Points() {
		owns[owner] = true
	}
	if i := slices.Index(owns, false); i >= 0 {
		t.Errorf("%s owns nothing", ids[i])
	}
	checkAgainstModel(t, r, ids, hashes(20000))
	all := r.AppendReplicas(nil, 42, len(ids))
	if slices.Sort(all); len(slices.Compact(all)) != len(ids) {
		t.Errorf("asked for all %d nodes, got %d", len(ids), len(all))
	}
}

func TestPointsAscendAndCount(t *testing.T) {
	weights := []uint32{3, 0, 1, 7}
	r := mustNew(t, []string{"a", "b", "c", "d"}, weights, 160)
	count := make([]uint32, r.Len())
	var last uint64
	i := 0
	for pos, owner := range r.Points() {
		if pos < last {
			t.Fatalf("point %d at %x comes after %x", i, pos, last)
		}
		if p, o := r.Point(i); p != pos || o != owner {
			t.Fatalf("Point(%d) = %x, %d; Points has %x, %d", i, p, o, pos, owner)
		}
		last = pos
		count[owner]++
		i++
	}
	if diff := cmp.Diff([]uint32{480, 0, 160, 1120}, count); diff != "" || i != r.NumPoints() {
		t.Errorf("%d points; -want +got:\n%s", r.NumPoints(), diff)
	}
	for range r.Points() {
		break // must stop when told to
	}
}

// Law: Locate, LocateBatch and AppendReplicas are what the definition says, for
// random nodes and hashes, those next to a point among them.
func TestModelLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, weights := drawNodes(t)
		r, err := ring.New(ids, weights, uint32(rapid.SampledFrom([]int{1, 2, 7, 40, 160}).Draw(t, "vnodes")))
		if err != nil {
			t.Fatal(err)
		}
		hs := append(hashes(50), 0, math.MaxUint64)
		for range min(r.NumPoints(), 30) {
			p, _ := r.Point(rapid.IntRange(0, r.NumPoints()-1).Draw(t, "point"))
			hs = append(hs, p-1, p, p+1, p|0xffff, p&^0xffff)
		}
		checkAgainstModel(t, r, ids, hs)
	})
}

// Law: Update gives what New gives, for few nodes, of which any change is a
// large part, and for many, of which it is not.
func TestUpdateLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const vnodes = 40
		ids, weights := drawNodes(t)
		if rapid.Bool().Draw(t, "many") {
			set := map[string]uint32{}
			for _, id := range append(floorbench.Names(80), ids...) {
				set[id] = rapid.Uint32Range(1, 3).Draw(t, "weight")
			}
			ids, weights = sorted(set)
		}
		r, err := ring.New(ids, weights, vnodes)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ids, weights = drawChange(t, ids, weights)
			if r, err = r.Update(ids, weights); err != nil {
				t.Fatal(err)
			}
			want, err := ring.New(ids, weights, vnodes)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(dump(want), dump(r)) {
				t.Fatalf("nodes %v, weights %v: New and Update differ", ids, weights)
			}
			checkAgainstModel(t, r, ids, hashes(50))
		}
	})
}

// Law: a change of one node moves keys to or from that node only, and in the
// order of preference of a key nothing else changes places.
func TestMovementLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, weights := drawNodes(t)
		ids = append(ids, "~") // after all others
		weights = append(weights, 0)
		i := rapid.IntRange(0, len(ids)-1).Draw(t, "changed")
		changed := slices.Clone(weights)
		changed[i] = uint32(rapid.IntRange(0, 6).Draw(t, "weight"))
		before, err := ring.New(ids, weights, 40)
		if err != nil {
			t.Fatal(err)
		}
		after, err := ring.New(ids, changed, 40)
		if err != nil {
			t.Fatal(err)
		}
		gains := changed[i] > weights[i]
		for _, h := range hashes(300) {
			if a, b := before.Locate(h), after.Locate(h); a != b && (gains && b != i || !gains && a != i) {
				t.Fatalf("%q from weight %d to %d moves %x from %d to %d", ids[i], weights[i], changed[i], h, a, b)
			}
			a := without(before.AppendReplicas(nil, h, len(ids)), i)
			b := without(after.AppendReplicas(nil, h, len(ids)), i)
			if !slices.Equal(a, b) {
				t.Fatalf("%q from weight %d to %d changes the order of others for %x from %v to %v", ids[i], weights[i], changed[i], h, a, b)
			}
		}
	})
}

func TestReplicasKeepWhatDstHas(t *testing.T) {
	r := mustNew(t, []string{"a", "b", "c"}, []uint32{1, 1, 1}, 160)
	for _, n := range []int{-1, 0} {
		if diff := cmp.Diff([]int{7}, r.AppendReplicas([]int{7}, 1, n)); diff != "" {
			t.Errorf("n = %d: -want +got:\n%s", n, diff)
		}
	}
	first := r.Locate(1)
	got := r.AppendReplicas([]int{first}, 1, 2) // what is there does not count
	if len(got) != 3 || got[1] != first || got[2] == first {
		t.Errorf("replicas after %d: %v", first, got)
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	ids := floorbench.Names(100)
	r := mustNew(t, ids, floorbench.Weights(100), 160)
	hs := hashes(100)
	dst := make([]int, 0, 128)
	if n := testing.AllocsPerRun(10, func() {
		for _, h := range hs {
			r.Locate(h)
			r.AppendReplicas(dst, h, 3)
			r.AppendReplicas(dst, h, 100)
		}
		r.LocateBatch(dst[:len(hs)], hs)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestIsolatedFromCaller(t *testing.T) {
	ids, weights := []string{"a", "b"}, []uint32{1, 1}
	r := mustNew(t, ids, weights, 40)
	ids[0], weights[1] = "x", 9
	next, err := r.Update([]string{"a", "b"}, []uint32{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dump(mustNew(t, []string{"a", "b"}, []uint32{1, 1}, 40)), dump(next)); diff != "" {
		t.Errorf("a change of the caller's slices is seen: -want +got:\n%s", diff)
	}
}

func ExampleRing_Locate() {
	ids := []string{"cache-a", "cache-b", "cache-c"} // ascending
	r, err := ring.New(ids, []uint32{1, 1, 2}, ring.DefaultVnodes)
	if err != nil {
		panic(err)
	}
	h := xxhash.Sum64String("user:42")
	fmt.Println(ids[r.Locate(h)])
	for _, i := range r.AppendReplicas(nil, h, 2) {
		fmt.Print(ids[i], " ")
	}
	// Output:
	// cache-c
	// cache-c cache-a
}

// A model of the mapping, from its definition.

type modelPoint struct {
	Pos   uint64
	Owner int
}

// dump is all that a ring's lookups depend on.
func dump(r *ring.Ring) []modelPoint {
	var all []modelPoint
	for pos, owner := range r.Points() {
		all = append(all, modelPoint{pos, owner})
	}
	return all
}

// modelFirst is the first point that is not before h, len(points) if none.
func modelFirst(points []modelPoint, h uint64) int {
	at, _ := slices.BinarySearchFunc(points, h, func(p modelPoint, h uint64) int {
		if p.Pos < h {
			return -1
		}
		return 1
	})
	return at
}

// modelOrder walks the points of r from the first that is not before h.
func modelOrder(points []modelPoint, owners int, h uint64) []int {
	at := modelFirst(points, h)
	var order []int
	for i := range points {
		if len(order) == owners {
			break
		}
		if o := points[(at+i)%len(points)].Owner; !slices.Contains(order, o) {
			order = append(order, o)
		}
	}
	return order
}

func checkAgainstModel(t fataler, r *ring.Ring, ids []string, hs []uint64) {
	t.Helper()
	points := dump(r)
	batch := make([]int, len(hs))
	r.LocateBatch(batch, hs)
	for i, h := range hs {
		want := -1
		if len(points) > 0 {
			want = points[modelFirst(points, h)%len(points)].Owner
		}
		if got := r.Locate(h); got != want || batch[i] != want {
			t.Fatalf("Locate(%x) = %d, in a batch %d, want %d of %v", h, got, batch[i], want, ids)
		}
		if len(ids) > 60 {
			continue
		}
		order := modelOrder(points, r.Owners(), h)
		for _, n := range []int{1, 3, len(ids), len(ids) + 1} {
			if got := r.AppendReplicas(nil, h, n); !slices.Equal(got, order[:min(n, len(order))]) {
				t.Fatalf("%d replicas of %x: %v, want the first of %v", n, h, got, order)
			}
		}
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func hashes(n int) []uint64 {
	hs := make([]uint64, n)
	for i := range hs {
		hs[i] = xxhash.Sum64String(fmt.Sprintf("k:%d", i))
	}
	return hs
}

func without(order []int, node int) []int {
	return slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i == node })
}

// drawNodes draws up to 40 nodes in ascending order, given in any order.
func drawNodes(t *rapid.T) (ids []string, weights []uint32) {
	set := rapid.MapOfN(rapid.StringMatching(`[a-z0-9.:-]{1,12}`), rapid.Uint32Range(0, 5), 0, 40).Draw(t, "nodes")
	return sorted(set)
}

func sorted(set map[string]uint32) (ids []string, weights []uint32) {
	for id := range set {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		weights = append(weights, set[id])
	}
	return ids, weights
}

// drawChange adds, removes or reweights some nodes.
func drawChange(t *rapid.T, ids []string, weights []uint32) ([]string, []uint32) {
	set := map[string]uint32{}
	for i, id := range ids {
		set[id] = weights[i]
	}
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		id := rapid.StringMatching(`[a-z0-9.:-]{1,12}`).Draw(t, "id")
		if len(ids) > 0 && rapid.Bool().Draw(t, "known") {
			id = rapid.SampledFrom(ids).Draw(t, "id")
		}
		if rapid.Bool().Draw(t, "remove") {
			delete(set, id)
			continue
		}
		set[id] = rapid.Uint32Range(0, 6).Draw(t, "weight")
	}
	return sorted(set)
}
