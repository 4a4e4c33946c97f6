package balancetest

import (
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
)

func doneOnce(t *testing.T, make Make) {
	set := NewSet(t, 1, 1, 1)
	p := mustMake(t, make, set)
	total := func() (sum int) {
		for i := range set.Len() {
			sum += set.Node(i).InFlight()
		}
		return sum
	}
	var open []balance.Ticket
	for k := range 300 { // far more than fit beside the count
		open = append(open, mustPick(t, p, time.Duration(k), uint64(k)))
	}
	if total() != 300 {
		t.Fatalf("%d in flight after 300 picks", total())
	}
	for k, tk := range open {
		twin := tk
		if !tk.Done(400, success) || twin.Done(400, success) || tk.Done(400, balance.Outcome{Result: balance.Failure}) {
			t.Fatal("the first Done does not count, or another one does")
		}
		if total() != 299-k {
			t.Fatalf("%d in flight after %d of 300 are done", total(), k+1)
		}
	}
	if (balance.Ticket{}).Done(0, success) {
		t.Error("Done of the zero ticket counts")
	}
}

func rejoin(t *testing.T, make Make) {
	pool := balance.NewPool()
	join := func(p balance.Picker, ids ...balance.Identity) (balance.Picker, *balance.Set) {
		t.Helper()
		nodes, err := pool.Update(ids)
		if err != nil {
			t.Fatal(err)
		}
		var members []balance.Member
		for _, n := range nodes {
			members = append(members, balance.Member{Node: n, Weight: 1})
		}
		set := SetOf(t, members...)
		if p == nil {
			return mustMake(t, make, set), set
		}
		return mustNext(t, p, set), set
	}
	a, b, c := balance.Identity{ID: "a"}, balance.Identity{ID: "b"}, balance.Identity{ID: "c"}
	p, set := join(nil, a, b, c)
	others := []*balance.Node{set.Node(1), set.Node(2)}
	var old []balance.Ticket
	for k := range 10 {
		old = append(old, mustPick(t, p, 0, uint64(k), others...))
	}
	first := set.Node(0)
	p, _ = join(p, b, c)
	p, set = join(p, a, b, c)
	if set.Node(0) == first || set.Node(0).InFlight() != 0 {
		t.Fatalf("a came back with %d in flight", set.Node(0).InFlight())
	}
	var open []balance.Ticket
	for k := range 5 {
		open = append(open, mustPick(t, p, 0, uint64(k), set.Node(1), set.Node(2)))
	}
	for _, tk := range old {
		tk.Done(1, success)
	}
	if got := set.Node(0).InFlight(); got != 5 || first.InFlight() != 0 {
		t.Errorf("a has %d in flight after its old requests ended, want 5 (and %d on the old counter)", got, first.InFlight())
	}
	p, set = join(p, balance.Identity{ID: "a", Incarnation: 2}, b, c)
	if got := set.Node(0).InFlight(); got != 0 {
		t.Errorf("another incarnation of a starts with %d in flight", got)
	}
	for _, tk := range open {
		tk.Done(1, success)
	}
	mustPick(t, p, 2, 1).Done(3, success)
}

// setter is what all pickers of the family have.
type setter interface{ Set() *balance.Set }

func expire(t *testing.T, make Make) {
	p := mustMake(t, make, NewSet(t, 1, 1))
	set := p.(setter).Set()
	var lost []balance.Ticket
	for k := range 20 {
		lost = append(lost, mustPick(t, p, 0, uint64(k)))
	}
	fresh := mustPick(t, p, time.Minute, 7)
	if n := set.Expire(time.Minute, 10*time.Second); n != 20 {
		t.Errorf("%d picks expired, want 20", n)
	}
	if sum := set.Node(0).InFlight() + set.Node(1).InFlight(); sum != 1 {
		t.Errorf("%d in flight after the expiry, want 1", sum)
	}
	for _, tk := range lost {
		if tk.Done(time.Minute, success) {
			t.Error("Done counts after the expiry")
		}
	}
	if !fresh.Done(time.Minute, success) {
		t.Error("a fresh pick has expired")
	}
	got := set.Node(0).Stats()
	more := set.Node(1).Stats()
	if got.Expired+more.Expired != 20 || got.Repeated+more.Repeated != 20 {
		t.Errorf("stats %+v and %+v, want 20 expired and 20 repeated together", got, more)
	}
	mustPick(t, p, time.Minute, 8).Done(time.Minute, success)
}
