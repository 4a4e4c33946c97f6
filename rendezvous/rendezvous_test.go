package rendezvous_test

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/rendezvous"
)

func TestNewRefuses(t *testing.T) {
	many := floorbench.Names(rendezvous.MaxNodes + 1)
	for _, c := range []struct {
		name    string
		ids     []string
		weights []uint32
		slots   int
		want    error
		says    string
	}{
		{"not sorted", []string{"b", "a"}, []uint32{1, 1}, 8, rendezvous.ErrOrder, `"b" at 0 is followed by "a"`},
		{"twice", []string{"a", "b", "b"}, []uint32{1, 1, 1}, 8, rendezvous.ErrOrder, `"b" at 1`},
		{"lengths", []string{"a"}, nil, 8, rendezvous.ErrInput, "1 ids and 0 weights"},
		{"nodes", many, floorbench.Weights(len(many)), 8, rendezvous.ErrTooManyNodes, "65535, at most 65534"},
		{"no slots", []string{"a"}, []uint32{1}, 0, rendezvous.ErrInput, "0 slots"},
		{"slots", []string{"a"}, []uint32{1}, rendezvous.MaxSlots + 1, rendezvous.ErrInput, "4194305 slots"},
	} {
		table, err := rendezvous.NewTable(c.ids, c.weights, c.slots)
		if table != nil || !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v, %v; want %v that says %q", c.name, table, err, c.want, c.says)
		}
		if strings.Contains(c.name, "slots") {
			continue
		}
		if hrw, err := rendezvous.New(c.ids, c.weights); hrw != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, hrw, err, c.want)
		}
	}
	table := mustTable(t, []string{"a"}, []uint32{1}, 8)
	if _, err := table.Update([]string{"b", "a"}, []uint32{1, 1}); !errors.Is(err, rendezvous.ErrOrder) {
		t.Errorf("Update: %v, want ErrOrder", err)
	}
}

// placer is what both forms have.
type placer interface {
	Len() int
	Owners() int
	Locate(h uint64) int
	AppendReplicas(dst []int, h uint64, n int) []int
}

func both(t testing.TB, ids []string, weights []uint32) map[string]placer {
	t.Helper()
	return map[string]placer{"hrw": mustNew(t, ids, weights), "table": mustTable(t, ids, weights, 1<<12)}
}

// Nobody owns anything: no nodes, or weight 0 only. Every lookup says so.
func TestNobody(t *testing.T) {
	for _, ids := range [][]string{nil, {"a", "b"}} {
		for name, p := range both(t, ids, make([]uint32, len(ids))) {
			for _, h := range []uint64{0, 1, math.MaxUint64} {
				if got := p.Locate(h); got != -1 {
					t.Errorf("%s, %d nodes: Locate(%x) = %d, want -1", name, p.Len(), h, got)
				}
				if got := p.AppendReplicas(nil, h, 3); len(got) != 0 {
					t.Errorf("%s, %d nodes: replicas %v, want none", name, p.Len(), got)
				}
			}
			if p.Owners() != 0 || p.Len() != len(ids) {
				t.Errorf("%s: %d owners of %d nodes, want none of %d", name, p.Owners(), p.Len(), len(ids))
			}
		}
	}
}

func TestOneNode(t *testing.T) {
	for name, p := range both(t, []string{"a", "b", "c"}, []uint32{0, 1, 0}) {
		for _, h := range append(hashes(1000), 0, math.MaxUint64) {
			if got := p.Locate(h); got != 1 {
				t.Fatalf("%s: Locate(%x) = %d, want 1", name, h, got)
			}
			if diff := cmp.Diff([]int{1}, p.AppendReplicas(nil, h, 3)); diff != "" {
				t.Fatalf("%s: replicas: -want +got:\n%s", name, diff)
			}
		}
	}
}

func TestTenThousandNodes(t *testing.T) {
	ids := floorbench.Names(10000)
	weights := floorbench.Weights(len(ids))
	for i := range weights {
		weights[i] += uint32(i % 3)
	}
	hrw := mustNew(t, ids, weights)
	for _, h := range hashes(20) {
		all := hrw.AppendReplicas(nil, h, len(ids)+1)
		if got := hrw.Locate(h); got != all[0] {
			t.Errorf("Locate(%x) = %d, first of all %d", h, got, all[0])
		}
		if few := hrw.AppendReplicas(nil, h, 16); !slices.Equal(few, all[:16]) {
			t.Errorf("16 replicas of %x are %v, want %v", h, few, all[:16])
		}
		if slices.Sort(all); len(slices.Compact(all)) != len(ids) {
			t.Errorf("asked for all %d nodes, got %d", len(ids), len(all))
		}
	}
}

// Law: the order of a key is that of the package comment, computed from it with
// numbers of any size.
func TestModelLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, weights := drawNodes(t)
		hrw, err := rendezvous.New(ids, weights)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range append(hashes(10), 0, 1, math.MaxUint64, rapid.Uint64().Draw(t, "h")) {
			want := modelOrder(ids, weights, h)
			owner := -1
			if len(want) > 0 {
				owner = want[0]
			}
			if got := hrw.Locate(h); got != owner {
				t.Fatalf("Locate(%x) = %d, want %d", h, got, owner)
			}
			for _, n := range []int{1, 2, 3, 16, 17, len(ids)} {
				if got := hrw.AppendReplicas(nil, h, n); !slices.Equal(got, want[:min(n, len(want))]) {
					t.Fatalf("%d replicas of %x: %v, want the first of %v", n, h, got, want)
				}
			}
		}
	})
}

// Law: a change of one node moves keys to or from that node only, and in the
// order of preference of a key nothing else changes places.
func TestMovementLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, weights := drawNodes(t)
		ids, weights = append(ids, "~"), append(weights, 0) // after all others
		i := rapid.IntRange(0, len(ids)-1).Draw(t, "changed")
		changed := slices.Clone(weights)
		changed[i] = drawWeight().Draw(t, "weight")
		before, after := both2(t, ids, weights), both2(t, ids, changed)
		gains := changed[i] > weights[i]
		for form := range before {
			for _, h := range hashes(100) {
				if a, b := before[form].Locate(h), after[form].Locate(h); a != b && (gains && b != i || !gains && a != i) {
					t.Fatalf("%q from weight %d to %d moves %x from %d to %d", ids[i], weights[i], changed[i], h, a, b)
				}
				a := without(before[form].AppendReplicas(nil, h, len(ids)), i)
				b := without(after[form].AppendReplicas(nil, h, len(ids)), i)
				if !slices.Equal(a, b) {
					t.Fatalf("%q from weight %d to %d changes the order of others for %x from %v to %v", ids[i], weights[i], changed[i], h, a, b)
				}
			}
		}
	})
}

func both2(t *rapid.T, ids []string, weights []uint32) [2]placer {
	hrw, err := rendezvous.New(ids, weights)
	if err != nil {
		t.Fatal(err)
	}
	table, err := rendezvous.NewTable(ids, weights, 257)
	if err != nil {
		t.Fatal(err)
	}
	return [2]placer{hrw, table}
}

// Law: a table has for every slot the order that HRW has for the slot's hash,
// and Update gives what NewTable gives.
func TestTableLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.SampledFrom([]int{1, 2, 257, 1024}).Draw(t, "slots")
		ids, weights := drawNodes(t)
		table, err := rendezvous.NewTable(ids, weights, slots)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ids, weights = drawChange(t, ids, weights)
			if table, err = table.Update(ids, weights); err != nil {
				t.Fatal(err)
			}
			hrw, err := rendezvous.New(ids, weights)
			if err != nil {
				t.Fatal(err)
			}
			for s := range slots {
				h := mix(uint64(s) + 1)
				if got, want := table.Slot(s), hrw.Locate(h); got != want {
					t.Fatalf("slot %d of %d: %d, want %d", s, slots, got, want)
				}
			}
			for _, h := range hashes(30) {
				s, _ := bits.Mul64(h, uint64(slots))
				if got := table.Locate(h); got != table.Slot(int(s)) {
					t.Fatalf("Locate(%x) = %d, slot %d has %d", h, got, s, table.Slot(int(s)))
				}
				want := hrw.AppendReplicas(nil, mix(s+1), 3)
				if got := table.AppendReplicas(nil, h, 3); !slices.Equal(got, want) {
					t.Fatalf("replicas of %x: %v, want %v", h, got, want)
				}
			}
		}
	})
}

func TestReplicasKeepWhatDstHas(t *testing.T) {
	for name, p := range both(t, []string{"a", "b", "c"}, []uint32{1, 1, 1}) {
		for _, n := range []int{-1, 0} {
			if diff := cmp.Diff([]int{7}, p.AppendReplicas([]int{7}, 1, n)); diff != "" {
				t.Errorf("%s: n = %d: -want +got:\n%s", name, n, diff)
			}
		}
		first := p.Locate(1)
		got := p.AppendReplicas([]int{first}, 1, 2) // what is there does not count
		if len(got) != 3 || got[1] != first || got[2] == first {
			t.Errorf("%s: replicas after %d: %v", name, first, got)
		}
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	ids, weights := floorbench.Names(100), floorbench.Weights(100)
	for i := range weights {
		weights[i] += uint32(i % 4)
	}
	hs := hashes(20)
	dst := make([]int, 0, 128)
	for name, p := range both(t, ids, weights) {
		if n := testing.AllocsPerRun(10, func() {
			for _, h := range hs {
				p.Locate(h)
				p.AppendReplicas(dst, h, 3)
				p.AppendReplicas(dst, h, 16)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func ExampleHRW_Locate() {
	ids := []string{"cache-a", "cache-b", "cache-c"} // ascending
	hrw, err := rendezvous.New(ids, []uint32{1, 1, 2})
	if err != nil {
		panic(err)
	}
	h := xxhash.Sum64String("user:42")
	fmt.Println(ids[hrw.Locate(h)])
	for _, i := range hrw.AppendReplicas(nil, h, 2) {
		fmt.Print(ids[i], " ")
	}
	// Output:
	// cache-b
	// cache-b cache-c
}

func ExampleTable_Update() {
	table, err := rendezvous.NewTable([]string{"a", "b", "c"}, []uint32{1, 1, 1}, rendezvous.DefaultSlots)
	if err != nil {
		panic(err)
	}
	next, err := table.Update([]string{"a", "b", "c", "d"}, []uint32{1, 1, 1, 1})
	if err != nil {
		panic(err)
	}
	moved := 0
	for s := range table.Slots() {
		if table.Slot(s) != next.Slot(s) {
			moved++
		}
	}
	fmt.Printf("%.3f\n", float64(moved)/float64(table.Slots()))
	// Output: 0.248
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

func drawWeight() *rapid.Generator[uint32] {
	return rapid.SampledFrom([]uint32{0, 1, 1, 1, 2, 3, 13, 1000, 1 << 31, math.MaxUint32})
}

// drawNodes draws up to 40 nodes in ascending order.
func drawNodes(t *rapid.T) (ids []string, weights []uint32) {
	return sorted(rapid.MapOfN(rapid.StringMatching(`[a-z0-9.:-]{1,12}`), drawWeight(), 0, 40).Draw(t, "nodes"))
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
		set[id] = drawWeight().Draw(t, "weight")
	}
	return sorted(set)
}

func mustNew(t testing.TB, ids []string, weights []uint32) *rendezvous.HRW {
	t.Helper()
	hrw, err := rendezvous.New(ids, weights)
	if err != nil {
		t.Fatal(err)
	}
	return hrw
}

func mustTable(t testing.TB, ids []string, weights []uint32, slots int) *rendezvous.Table {
	t.Helper()
	table, err := rendezvous.NewTable(ids, weights, slots)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
