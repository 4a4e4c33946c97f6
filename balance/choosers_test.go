package balance

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// board is a cost that is set by hand.
type board []float64

func (b board) Cost(i int, _ time.Duration) float64                { return b[i] }
func (b board) Observe(int, time.Duration, time.Duration, Outcome) {}
func (b board) Bind(*Set, []int) Cost                              { return b }
func shares(tb testing.TB, p Picker, n, members int, hold bool) []float64 {
	tb.Helper()
	got := make([]float64, members)
	for k := range n {
		tk, err := p.Pick(0, uint64(k), nil)
		if err != nil {
			tb.Fatal(err)
		}
		got[tk.Index()] += 1 / float64(n)
		if !hold {
			tk.Done(0, Outcome{Result: Success})
		}
	}
	return got
}

// TestTwoHosts: of two nodes the busier one gets a quarter with replacement and
// nothing without.
func TestTwoHosts(t *testing.T) {
	set := testSet(t, 1, 1)
	with := must(NewLeastRequest(set, Choices{Replace: true, Cost: board{1, 0}}))
	if got := shares(t, with, 100_000, 2, false)[0]; got < .24 || got > .26 {
		t.Errorf("with replacement the busier node gets %.3f, want 1/4", got)
	}
	for name, p := range map[string]Picker{
		"p2c":   must(NewP2C(set, board{1, 0})),
		"least": must(NewLeastRequest(set, Choices{Cost: board{1, 0}})),
		"scan":  must(NewFullScan(set, board{1, 0})),
		"left":  must(NewGoLeft(set, 2, board{1, 0})),
	} {
		if got := shares(t, p, 1000, 2, false)[0]; got != 0 {
			t.Errorf("%s: the busier node gets %.3f, want nothing", name, got)
		}
	}
}

// TestPlainPaths: the quick paths, for equal weights and requests in flight, do
// what the others do.
func TestPlainPaths(t *testing.T) {
	busyFirst := func() *Set {
		set := testSet(t, 1, 1)
		set.Take(0, 0)
		return set
	}
	if got := shares(t, must(NewP2C(busyFirst(), nil)), 1000, 2, false)[0]; got != 0 {
		t.Errorf("p2c: the busier of two nodes gets %.3f, want nothing", got)
	}
	least := must(NewLeastRequest(busyFirst(), Choices{Replace: true}))
	if got := shares(t, least, 100_000, 2, false)[0]; got < .24 || got > .26 {
		t.Errorf("least request: the busier of two nodes gets %.3f, want 1/4", got)
	}
	for name, p := range map[string]Picker{
		"scan":  must(NewFullScan(testSet(t, 1, 1, 1, 1, 1), nil)),
		"p2c":   must(NewP2C(testSet(t, 1, 1, 1, 1, 1), nil)),
		"least": must(NewLeastRequest(testSet(t, 1, 1, 1, 1, 1), Choices{Replace: true})),
	} {
		for i, got := range shares(t, p, 100_000, 5, false) {
			if got < .19 || got > .21 {
				t.Errorf("%s: idle node %d of 5 gets %.3f, want 1/5", name, i, got)
			}
		}
	}
	left := shares(t, must(NewGoLeft(testSet(t, 1, 1, 1, 1), 2, nil)), 10_000, 4, false)
	if left[2]+left[3] != 0 || left[0] < .48 || left[1] < .48 {
		t.Errorf("go left: idle shares %v, want all on the left, evenly", left)
	}
}

// TestIdleShares: idle nodes are picked by weight; nginx's random two is not.
func TestIdleShares(t *testing.T) {
	set := testSet(t, 9, 1)
	f := func(name string, p Picker, want, tolerance float64) {
		t.Helper()
		if got := shares(t, p, 100_000, 2, false)[0]; math.Abs(got-want) > tolerance {
			t.Errorf("%s: the node of weight 9 of 10 gets %.3f of idle picks, want %.3f", name, got, want)
		}
	}
	f("random", NewRandom(set), .9, .005)
	f("p2c", must(NewP2C(set, nil)), .9, .005)
	f("least", must(NewLeastRequest(set, Choices{Replace: true})), .9, .005)
	f("scan", must(NewFullScan(set, nil)), .9, .005)
	f("random two", must(NewRandomTwo(set, nil)), .1, .005)
}

// TestLoadsFollowWeights: requests in flight come to the ratio of the weights.
func TestLoadsFollowWeights(t *testing.T) {
	for name, make := range map[string]func(*Set) Picker{
		"p2c":   func(s *Set) Picker { return must(NewP2C(s, nil)) },
		"scan":  func(s *Set) Picker { return must(NewFullScan(s, nil)) },
		"least": func(s *Set) Picker { return must(NewLeastRequest(s, Choices{D: 3})) },
	} {
		got := shares(t, make(testSet(t, 1, 2, 5)), 8000, 3, true)
		for i, want := range []float64{1. / 8, 2. / 8, 5. / 8} {
			if math.Abs(got[i]-want) > .02 {
				t.Errorf("%s: shares %v of requests held, want 1/8 2/8 5/8", name, got)
				break
			}
		}
	}
}

// TestLongestQueue throws m balls into m bins: the largest bin is 4 with two
// choices, 3 with three or by going left.
func TestLongestQueue(t *testing.T) {
	const m = 100_000
	f := func(name string, make func(*Set) Picker, lo, hi int) {
		t.Helper()
		set := benchSet(t, m, one)
		p := make(set)
		most := 0
		for k := range m {
			tk, err := p.Pick(0, uint64(k), nil)
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, tk.Node().InFlight())
		}
		if most < lo || most > hi {
			t.Errorf("%s: the fullest of %d bins holds %d balls, want %d to %d", name, m, most, lo, hi)
		}
	}
	f("random", func(s *Set) Picker { return NewRandom(s) }, 7, 9)
	f("p2c", func(s *Set) Picker { return must(NewP2C(s, nil)) }, 3, 5)
	f("least", func(s *Set) Picker { return must(NewLeastRequest(s, Choices{Replace: true})) }, 3, 5)
	f("least 3", func(s *Set) Picker { return must(NewLeastRequest(s, Choices{D: 3})) }, 2, 4)
	f("left 3", func(s *Set) Picker { return must(NewGoLeft(s, 3, nil)) }, 2, 4)
}

func TestFullScanAmong(t *testing.T) {
	set := testSet(t, 1, 1, 1, 0, 1)
	p := must(NewFullScan(set, board{5, 3, 3, 0, 1}))
	f := func(members []int, exclude []*Node, want int, wantErr error) {
		t.Helper()
		tk, err := p.Among(0, members, exclude)
		if !errors.Is(err, wantErr) || tk.Index() != want {
			t.Errorf("among %v: %d, %v; want %d, %v", members, tk.Index(), err, want, wantErr)
		}
		tk.Done(0, Outcome{})
	}
	f([]int{0, 2, 1}, nil, 2, nil) // the first one on a tie
	f([]int{0, 1, 2}, []*Node{set.Node(1)}, 2, nil)
	f([]int{3}, nil, -1, ErrNoNode)
	f([]int{1}, []*Node{set.Node(1)}, -1, ErrExcluded)
	f([]int{0, 3, 4}, nil, 4, nil)
}

func TestSettingsRefused(t *testing.T) {
	set := testSet(t, 1)
	refused := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
	_, err := NewLeastRequest(set, Choices{D: 1})
	refused("one choice", err)
	_, err = NewLeastRequest(set, Choices{D: 11})
	refused("eleven choices", err)
	_, err = NewGoLeft(set, 1, nil)
	refused("one group", err)
	_, err = NewP2C(set, &InFlight{Errors: ErrorLoad{Each: math.NaN()}})
	refused("NaN errors", err)
	_, err = NewFullScan(set, &InFlight{Errors: ErrorLoad{Each: 1, Decay: -1}})
	refused("negative decay", err)
}

// TestErrorsCount: an error weighs Each requests and fades.
func TestErrorsCount(t *testing.T) {
	set := testSet(t, 1, 1)
	p := must(NewP2C(set, &InFlight{Errors: ErrorLoad{Each: 8, Decay: time.Second}}))
	p.Set().Take(0, 0).Done(0, Outcome{Result: Failure})
	p.Set().Take(0, 0).Done(0, Outcome{Result: Ignored})
	load := func(now time.Duration) float64 { return ErrorLoad{Each: 8, Decay: time.Second}.Of(set.Node(0), now) }
	for now, want := range map[time.Duration]float64{0: 8, time.Second: 8 / math.E, 4 * time.Second: 0} {
		if got := load(now); math.Abs(got-want) > 1e-12 {
			t.Errorf("load %v after %v, want %v", got, now, want)
		}
	}
	if got := shares(t, p, 100, 2, false); got[0] != 0 {
		t.Errorf("the node with an error gets %.2f of the picks", got[0])
	}
}

// TestZoneComesBack: with zone A down requests go to zone B; once a probe has
// found one node of A well, and the next set says so, they come back.
func TestZoneComesBack(t *testing.T) {
	well := func(now time.Duration) bool { return now < 5*time.Second || now >= 20*time.Second }
	a, b := testSet(t, 1, 1, 1), testSet(t, 1, 1, 1)
	var zoneA Picker = NewRandom(a)
	zoneB := NewRandom(b)
	probe := func(now time.Duration) { // of the nodes of A, without user traffic
		members := []Member{a.Member(0), a.Member(1), a.Member(2)}
		for i := range members {
			members[i].Down = !well(now) || i > 0 && now >= 5*time.Second
		}
		set := must(NewSet(members))
		zoneA = must(zoneA.Next(set))
	}
	back := time.Duration(-1)
	for now := time.Duration(0); now < 40*time.Second; now += 10 * time.Millisecond {
		if now%(5*time.Second) == 0 {
			probe(now)
		}
		tk, err := First(now, uint64(now), nil, zoneA, zoneB)
		if err != nil {
			t.Fatal(err)
		}
		tk.Done(now, Outcome{Result: Success})
		if inA := slices.Contains([]*Node{a.Node(0), a.Node(1), a.Node(2)}, tk.Node()); inA && now >= 20*time.Second && back < 0 {
			back = now - 20*time.Second
		} else if inA && now >= 6*time.Second && now < 20*time.Second {
			t.Fatalf("zone A gets requests at %v, when all of it is down", now)
		}
	}
	if back < 0 || back > 10*time.Second {
		t.Errorf("requests came back to zone A after %v, want within 10 s", back)
	}
}

// TestFirst: the first tier that has somebody.
func TestFirst(t *testing.T) {
	zone := func(down bool) (*Set, Picker) {
		set, err := NewSet([]Member{{Node: NewNode("a", 0), Weight: 1, Down: down}})
		if err != nil {
			t.Fatal(err)
		}
		return set, NewRandom(set)
	}
	_, empty := zone(true)
	near, first := zone(false)
	far, second := zone(false)
	pick := func(exclude []*Node, tiers ...Picker) *Node {
		tk, err := First(0, 1, exclude, tiers...)
		if err != nil && !errors.Is(err, ErrNoNode) {
			t.Fatal(err)
		}
		tk.Done(0, Outcome{})
		return tk.Node()
	}
	got := []*Node{pick(nil, first, second), pick(nil, empty, second), pick([]*Node{near.Node(0)}, first, second), pick(nil, empty), pick(nil)}
	want := []*Node{near.Node(0), far.Node(0), far.Node(0), nil, nil}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b *Node) bool { return a == b })); d != "" {
		t.Errorf("nodes (-want +got):\n%s", d)
	}
}
