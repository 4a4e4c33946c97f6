// Package balancetest holds the laws that every balance.Picker obeys, as a test
// that any picker can be put to: Run.
package balancetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/balance"
)

// Make makes the picker under test over a set.
type Make func(set *balance.Set) (balance.Picker, error)

// The names of laws, for Options.Skip.
const (
	// Nobody: without anybody to pick there is ErrNoNode.
	Nobody = "nobody"
	// Barred: weight 0 and down get no picks.
	Barred = "barred"
	// Reached: everybody else gets some, also when requests come one at a time,
	// and also after the clock has jumped.
	Reached = "reached"
	// Excluded: no pick of an excluded node; ErrExcluded when all are.
	Excluded = "excluded"
	// DoneOnce: the first Done by any copy counts, no other.
	DoneOnce = "done-once"
	// Rejoin: requests of a node that left end on its old counter.
	Rejoin = "rejoin"
	// Expire: picks whose Done is forgotten can be closed, once.
	Expire = "expire"
	// Repeatable: the same arguments give the same picks.
	Repeatable = "repeatable"
	// Even: what one of five equal nodes does not get, because it is excluded or
	// down, is spread over all others.
	Even = "even"
	// RandomSteps: counts survive a thousand concurrent steps.
	RandomSteps = "random-steps"
	// ClockJumps: no pick fails when the clock jumps.
	ClockJumps = "clock-jumps"
	// NoAllocation: a steady pick and its Done allocate nothing.
	NoAllocation = "no-allocation"
)

// Options tells which laws a policy does not claim.
type Options struct {
	// Skip names the laws to leave out.
	Skip []string
}

// Run puts a policy to the laws.
func Run(t *testing.T, make Make, o Options) {
	t.Helper()
	for _, law := range []struct {
		name  string
		check func(*testing.T, Make)
	}{
		{Nobody, nobody}, {Barred, barred}, {Reached, reached}, {Excluded, excluded}, {DoneOnce, doneOnce},
		{Rejoin, rejoin}, {Expire, expire}, {Repeatable, repeatable}, {Even, even},
		{RandomSteps, randomSteps}, {ClockJumps, clockJumps}, {NoAllocation, noAllocation},
	} {
		if !slices.Contains(o.Skip, law.name) {
			t.Run(law.name, func(t *testing.T) { law.check(t, make) })
		}
	}
}

// NewSet returns a set of new nodes named n0, n1 ... with the weights.
func NewSet(tb testing.TB, weights ...float64) *balance.Set {
	tb.Helper()
	members := make([]balance.Member, len(weights))
	for i, w := range weights {
		members[i] = balance.Member{Node: balance.NewNode(fmt.Sprint("n", i), 0), Weight: w}
	}
	return SetOf(tb, members...)
}

// SetOf returns the set of members.
func SetOf(tb testing.TB, members ...balance.Member) *balance.Set {
	tb.Helper()
	set, err := balance.NewSet(members)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// Equal returns n weights of 1.
func Equal(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

func mustMake(tb testing.TB, make Make, set *balance.Set) balance.Picker {
	tb.Helper()
	p, err := make(set)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func mustNext(tb testing.TB, p balance.Picker, set *balance.Set) balance.Picker {
	tb.Helper()
	n, err := p.Next(set)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func mustPick(tb testing.TB, p balance.Picker, now time.Duration, seed uint64, exclude ...*balance.Node) balance.Ticket {
	tb.Helper()
	tk, err := p.Pick(now, seed, exclude)
	if err != nil {
		tb.Fatalf("pick at %v: %v", now, err)
	}
	return tk
}

var success = balance.Outcome{Result: balance.Success}

func nobody(t *testing.T, make Make) {
	node := balance.NewNode("a", 0)
	sets := map[string]*balance.Set{
		"empty":     NewSet(t),
		"zero":      NewSet(t, 0, 0),
		"down":      SetOf(t, balance.Member{Node: node, Weight: 1, Down: true}),
		"down-zero": SetOf(t, balance.Member{Node: node, Weight: 1, Down: true}, balance.Member{Node: balance.NewNode("b", 0)}),
	}
	some := NewSet(t, 1, 1)
	for name, set := range sets {
		for _, p := range []balance.Picker{mustMake(t, make, set), mustNext(t, mustMake(t, make, some), set)} {
			tk, err := p.Pick(0, 1, nil)
			if !errors.Is(err, balance.ErrNoNode) || errors.Is(err, balance.ErrExcluded) || tk.Node() != nil {
				t.Errorf("%s: picked %v with error %v, want ErrNoNode", name, tk.Node(), err)
			}
		}
		back := mustNext(t, mustNext(t, mustMake(t, make, some), set), some)
		mustPick(t, back, 0, 1).Done(0, success)
	}
}

// mixed is a set with a member of weight 0 and one that is down.
func mixed(t *testing.T) *balance.Set {
	set := NewSet(t, 1, 0, 2, 1, 3)
	members := []balance.Member{}
	for i := range set.Len() {
		m := set.Member(i)
		m.Down = i == 3
		members = append(members, m)
	}
	return SetOf(t, members...)
}

// oneByOne counts n picks that begin a step apart and take a millisecond each.
func oneByOne(t *testing.T, p balance.Picker, n int, step time.Duration, exclude ...*balance.Node) map[int]int {
	t.Helper()
	got := map[int]int{}
	set := p.(setter).Set()
	for k := range n {
		now := time.Duration(k) * step
		tk := mustPick(t, p, now, uint64(k), exclude...)
		if tk.Node() != set.Node(tk.Index()) {
			t.Fatalf("ticket's index %d is not its node %s", tk.Index(), tk.Node().ID())
		}
		got[tk.Index()]++
		tk.Done(now+time.Millisecond, success)
	}
	return got
}

func barred(t *testing.T, make Make) {
	set := mixed(t)
	got := oneByOne(t, mustMake(t, make, set), 10_000, 2*time.Millisecond)
	for i := range set.Len() {
		if m := set.Member(i); (m.Weight == 0 || m.Down) && got[i] != 0 {
			t.Errorf("member %d (weight %v, down %v) got %d picks", i, m.Weight, m.Down, got[i])
		}
	}
}

func reached(t *testing.T, make Make) {
	set := mixed(t)
	p := mustMake(t, make, set)
	check := func(what string) {
		t.Helper()
		got := oneByOne(t, p, 20_000, 10*time.Millisecond)
		for i := range set.Len() {
			if m := set.Member(i); m.Weight > 0 && !m.Down && got[i] == 0 {
				t.Errorf("member %d (weight %v) got none of 20000 picks %s: %v", i, m.Weight, what, got)
			}
		}
	}
	check("at first")
	jump(t, p)
	check("after the clock had jumped")
}

func excluded(t *testing.T, make Make) {
	f := func(set *balance.Set, out ...int) {
		t.Helper()
		p := mustMake(t, make, set)
		var exclude []*balance.Node
		for _, i := range out {
			exclude = append(exclude, set.Node(i))
		}
		for k := range 2000 {
			now := time.Duration(k) * time.Millisecond
			tk, err := p.Pick(now, uint64(k), exclude)
			if len(out) == set.Live() {
				if !errors.Is(err, balance.ErrExcluded) {
					t.Fatalf("all %d excluded: error %v, want ErrExcluded", len(out), err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%d of %d excluded: %v", len(out), set.Live(), err)
			}
			for _, n := range exclude {
				if tk.Node() == n {
					t.Fatalf("picked %s, which is excluded", n.ID())
				}
			}
			if k%3 > 0 {
				tk.Done(now, success)
			}
		}
	}
	f(NewSet(t, 1), 0)
	f(NewSet(t, 1, 1), 0)
	f(NewSet(t, 1, 1), 0, 1)
	f(NewSet(t, 1000, 1), 0)
	f(NewSet(t, 5, 1, 0, 1), 0, 1)
	f(NewSet(t, 5, 1, 1, 1), 0, 1, 2, 3)
	f(NewSet(t, Equal(100)...), 3, 50, 99)
}

func repeatable(t *testing.T, make Make) {
	run := func() (picks []int) {
		p := mustMake(t, make, NewSet(t, 1, 2, 3, 1))
		var open []balance.Ticket
		for k := range 3000 {
			now := time.Duration(k) * 100 * time.Microsecond
			tk := mustPick(t, p, now, uint64(k)*7)
			picks = append(picks, tk.Index())
			if open = append(open, tk); len(open) > 5+k%4 {
				open[0].Done(now, balance.Outcome{Result: balance.Success + balance.Result(k%50/49)})
				open = open[1:]
			}
		}
		return picks
	}
	if d := cmp.Diff(run(), run()); d != "" {
		t.Errorf("the same arguments gave other picks:\n%s", d)
	}
}

func even(t *testing.T, make Make) {
	if RaceEnabled {
		t.Skip("long, and without concurrency")
	}
	const picks = 100_000
	set := NewSet(t, Equal(5)...)
	check := func(what string, got map[int]int) {
		t.Helper()
		for _, i := range []int{0, 1, 3, 4} {
			if n := got[i]; n < picks*24/100 || n > picks*26/100 {
				t.Errorf("node %d of 5 got %d of %d picks with node 2 %s, want 25 %% +- 1", i, n, picks, what)
			}
		}
	}
	check("excluded", oneByOne(t, mustMake(t, make, set), picks, 2*time.Millisecond, set.Node(2)))
	members := []balance.Member{}
	for i := range set.Len() {
		m := set.Member(i)
		m.Down = i == 2
		members = append(members, m)
	}
	check("down", oneByOne(t, mustMake(t, make, SetOf(t, members...)), picks, 2*time.Millisecond))
}

func noAllocation(t *testing.T, make Make) {
	if RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, weights := range [][]float64{Equal(10), {1, 2, 3, 4, 5}} {
		p := mustMake(t, make, NewSet(t, weights...))
		k := 0
		step := func() {
			k++
			now := time.Duration(k) * time.Microsecond
			tk, err := p.Pick(now, uint64(k), nil)
			if err != nil {
				t.Fatal(err)
			}
			tk.Done(now+time.Millisecond, success)
		}
		for range 2000 {
			step()
		}
		if n := testing.AllocsPerRun(2000, step); n != 0 {
			t.Errorf("%v allocations a pick and Done with %d nodes, want 0", n, len(weights))
		}
	}
}
