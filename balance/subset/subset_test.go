package subset

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

var update = flag.Bool("update", false, "write the golden file of the shuffle")

// TestGolden freezes the shuffle: clients of different versions must agree.
func TestGolden(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct{ n, k, client int }{
		{0, 3, 0}, {2, 3, 5}, {10, 3, 0}, {10, 3, 1}, {10, 3, 2}, {10, 3, 3}, {10, 1, 7}, {12, 4, 0}, {12, 4, 1}, {12, 4, 2},
		{300, 30, 0}, {300, 30, 299}, {1000, 20, 123456},
	} {
		got, err := Deterministic(c.n, c.k, c.client)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "n=%d k=%d client=%d: %v\n", c.n, c.k, c.client, got)
	}
	ids := []string{"a", "b", "c", "10.0.0.1:80", "10.0.0.2:80", "", "node-7"}
	for _, seed := range []uint64{0, 1, 1 << 63} {
		got, err := Random(ids, 4, seed)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "random seed=%d: %v\n", seed, got)
	}
	const file = "testdata/shuffle.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("the shuffle has changed (-golden +got):\n%s", d)
	}
}

// clientsPerNode returns how many of m clients each of n nodes has.
func clientsPerNode(t *testing.T, n, m int, of func(client int) ([]int, error)) []int {
	t.Helper()
	got := make([]int, n)
	for c := range m {
		list, err := of(c)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for _, i := range list {
			if seen[i] {
				t.Fatalf("client %d has node %d twice", c, i)
			}
			seen[i] = true
			got[i]++
		}
	}
	return got
}

// TestDeterministicLoads: exact where k divides n, near where it does not.
func TestDeterministicLoads(t *testing.T) {
	f := func(n, k, lo, hi int) {
		t.Helper()
		got := clientsPerNode(t, n, n, func(c int) ([]int, error) { return Deterministic(n, k, c) })
		if slices.Min(got) < lo || slices.Max(got) > hi {
			t.Errorf("%d nodes and clients, subsets of %d: %d to %d clients a node, want %d to %d", n, k, slices.Min(got), slices.Max(got), lo, hi)
		}
	}
	f(300, 30, 30, 30)
	f(300, 75, 75, 75)
	f(300, 90, 75, 102)
	f(300, 225, 195, 255) // one subset a round: as uneven as a random one
}

// TestRandomLoads: the spread of random subsets, in % of the mean, over seeds.
func TestRandomLoads(t *testing.T) {
	if balancetest.RaceEnabled {
		t.Skip("long, and without concurrency")
	}
	const n, trials = 300, 21
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("node-", i)
	}
	f := func(k int, lo, hi float64) {
		t.Helper()
		var mins, maxs []float64
		for trial := range trials {
			got := clientsPerNode(t, n, n, func(c int) ([]int, error) { return Random(ids, k, uint64(trial*n+c)) })
			mins = append(mins, float64(slices.Min(got))/float64(k)*100)
			maxs = append(maxs, float64(slices.Max(got))/float64(k)*100)
		}
		slices.Sort(mins)
		slices.Sort(maxs)
		if a, b := mins[trials/2], maxs[trials/2]; a < lo-5 || a > lo+5 || b < hi-5 || b > hi+5 {
			t.Errorf("subsets of %d: %.0f %% to %.0f %% of the mean, want %v to %v", k, a, b, lo, hi)
		}
	}
	f(30, 53, 153)
	f(90, 75.6, 124.4)
	f(225, 90, 109)
}

// TestRandomMovesLeast: a node that comes or goes changes one entry at most.
func TestRandomMovesLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "nodes")
		k := rapid.IntRange(1, 40).Draw(t, "k")
		seed := rapid.Uint64().Draw(t, "seed")
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprint("node-", i)
		}
		names := func(ids []string) map[string]bool {
			list, err := Random(ids, k, seed)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != min(k, len(ids)) {
				t.Fatalf("a subset of %d out of %d, want %d", len(list), len(ids), k)
			}
			got := map[string]bool{}
			for _, i := range list {
				got[ids[i]] = true
			}
			return got
		}
		all := names(ids)
		gone := rapid.IntRange(0, n-1).Draw(t, "gone")
		less := names(slices.Delete(slices.Clone(ids), gone, gone+1))
		lost, won := 0, 0
		for id := range all {
			lost += b2i(!less[id])
		}
		for id := range less {
			won += b2i(!all[id])
		}
		if lost > 1 || won > 1 || won > lost {
			t.Fatalf("without %s the subset of %d lost %d and won %d", ids[gone], k, lost, won)
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestRefused(t *testing.T) {
	f := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, balance.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
	_, err := Deterministic(3, 0, 0)
	f("k 0", err)
	_, err = Deterministic(3, 1, -1)
	f("client -1", err)
	_, err = Deterministic(-1, 1, 0)
	f("n -1", err)
	_, err = Random([]string{"a"}, 0, 1)
	f("random k 0", err)
	_, err = NewNumbers(-1)
	f("ttl -1", err)
	_, err = NewAperture(balancetest.NewSet(t, 1), ApertureConfig{Low: 2, High: 1})
	f("low above high", err)
	_, err = NewAperture(balancetest.NewSet(t, 1), ApertureConfig{Min: 3, Max: 2})
	f("min above max", err)
}

func TestNumbers(t *testing.T) {
	n, err := NewNumbers(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	f := func(holder string, now time.Duration, want int) {
		t.Helper()
		if got := n.Lease(holder, now); got != want {
			t.Errorf("%s at %v: number %d, want %d", holder, now, got, want)
		}
	}
	f("a", 0, 0)
	f("b", 0, 1)
	f("c", 0, 2)
	f("b", 5*time.Second, 1) // renewed
	n.Release("a")
	n.Release("nobody")
	f("d", 6*time.Second, 0)  // the smallest free one
	f("e", 11*time.Second, 2) // c's lease has ended
	f("c", 11*time.Second, 3)
	f("b", 16*time.Second, 1) // too late, but nobody else came
	if got := SmallestFree([]bool{true, false}); got != 1 {
		t.Errorf("smallest free %d, want 1", got)
	}
	if got := SmallestFree(nil); got != 0 {
		t.Errorf("smallest free of none %d, want 0", got)
	}
}

// TestAperture: the window follows the load, one request a node.
func TestAperture(t *testing.T) {
	a, err := NewAperture(balancetest.NewSet(t, balancetest.Equal(50)...), ApertureConfig{Smooth: time.Second, Max: 30})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	var open []balance.Ticket
	step := func(flight int, d time.Duration) {
		for end := now + d; now < end; now += 10 * time.Millisecond {
			if len(open) > 0 {
				open[0].Done(now, balance.Outcome{Result: balance.Success})
				open = open[1:]
			}
			for len(open) < flight {
				tk, err := a.Pick(now, uint64(now)+uint64(len(open)), nil)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, tk)
			}
		}
	}
	check := func(what string, lo, hi int) {
		t.Helper()
		if got := a.Size(); got < lo || got > hi {
			t.Errorf("%s: a window of %d, want %d to %d", what, got, lo, hi)
		}
	}
	check("at first", 1, 1)
	step(10, 10*time.Second)
	check("with 10 in flight", 8, 12)
	step(20, 10*time.Second)
	check("with 20 in flight", 17, 23)
	step(100, 10*time.Second)
	check("with 100 in flight", 30, 30)
	next, err := a.Next(balancetest.NewSet(t, balancetest.Equal(12)...))
	if err != nil {
		t.Fatal(err)
	}
	if got := next.(*Aperture).Size(); got != 12 {
		t.Errorf("a window of %d over 12 nodes, want all", got)
	}
	step(3, 20*time.Second)
	check("with 3 in flight", 2, 5)
}

// TestApertureSteps: every event moves the window by one at most, at 1.125 and
// 0.875 requests a node.
func TestApertureSteps(t *testing.T) {
	a, err := NewAperture(balancetest.NewSet(t, balancetest.Equal(50)...), ApertureConfig{Smooth: 1})
	if err != nil {
		t.Fatal(err)
	}
	var open []balance.Ticket
	var got []int
	for k := range 12 {
		tk, err := a.Pick(time.Duration(k)*time.Second, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, tk)
		got = append(got, a.Size())
	}
	for k, tk := range open {
		tk.Done(time.Duration(20+k)*time.Second, balance.Outcome{})
		got = append(got, a.Size())
	}
	// 2/1, 3/2 ... 9/8 are 1.125 or more; 10/9 is not; 11/9 is. 11/10 to 9/10 are in
	// the band, and 8/10, 7/9 ... below it.
	want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10, 11, 11, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("window sizes (-want +got):\n%s", d)
	}
}

// TestApertureStaysInside: only nodes in the window get requests, unless all of
// them are excluded.
func TestApertureStaysInside(t *testing.T) {
	set := balancetest.NewSet(t, balancetest.Equal(10)...)
	a, err := NewAperture(set, ApertureConfig{Min: 3, Max: 3})
	if err != nil {
		t.Fatal(err)
	}
	got := [10]int{}
	inside := []*balance.Node{set.Node(0), set.Node(1), set.Node(2)}
	pick := func(k int, exclude ...*balance.Node) int {
		tk, err := a.Pick(0, uint64(k), exclude)
		if err != nil {
			t.Fatal(err)
		}
		tk.Done(0, balance.Outcome{})
		return tk.Index()
	}
	for k := range 3000 {
		got[pick(k)]++
		if i := pick(k, inside[:2]...); i != 2 {
			t.Fatalf("picked %d with all but 2 of the window excluded", i)
		}
		if i := pick(k, inside...); i < 3 {
			t.Fatalf("picked %d, which is excluded", i)
		}
	}
	for i, n := range got {
		if want := i < 3; want != (n > 0) || want && n < 900 {
			t.Errorf("node %d got %d of 3000 picks with a window of 3", i, n)
		}
	}
}
