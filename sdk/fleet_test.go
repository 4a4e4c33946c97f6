package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/wrr"
	"github.com/shardd/shardd/resilience/retry"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

func acquire(t testing.TB, c *sdk.Client, key string, cost int64) *sdk.Ticket {
	t.Helper()
	ticket := new(sdk.Ticket)
	var err error
	if *ticket, err = c.Acquire(t.Context(), key, cost); err != nil {
		t.Fatalf("acquire %q: %v", key, err)
	}
	return ticket
}

func loadOf(t testing.TB, c *sdk.Client, id string) sdk.NodeLoad {
	t.Helper()
	for _, n := range c.LoadStats().Nodes {
		if n.ID == id {
			return n
		}
	}
	t.Fatalf("no node %s", id)
	return sdk.NodeLoad{}
}

// owned returns a key of the node.
func owned(t testing.TB, c *sdk.Client, id string) string {
	t.Helper()
	for i := range 100_000 {
		k := fmt.Sprintf("k%d", i)
		if r, err := c.Route(k); err == nil && r.Owner().ID == id {
			return k
		}
	}
	t.Fatalf("%s owns nothing", id)
	return ""
}

// Field case bound-02: ten requests on a; a leaves and comes back, at its old
// address and at another; five on the new a; the ten end.
func TestBound02(t *testing.T) {
	for _, addr := range []string{"10.0.0.0:11211", "10.9.9.9:11211"} {
		l := newLine(t)
		c, f := start(t, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: -1}))
		three := nodes(3)
		mustGive(t, f, l.ring(three...))
		key := owned(t, c, "node-000")
		var old []*sdk.Ticket
		for range 10 {
			old = append(old, acquire(t, c, key, 1))
		}
		mustGive(t, f, l.ring(three[1:]...))
		three[0].Addr = addr
		mustGive(t, f, l.ring(three...))
		if got := loadOf(t, c, "node-000").InFlight; got != 0 {
			t.Fatalf("the new incarnation begins with %d", got)
		}
		var fresh []*sdk.Ticket
		for range 5 {
			fresh = append(fresh, acquire(t, c, key, 1))
		}
		for _, tk := range old {
			if !tk.Done(sdk.Success) || tk.Done(sdk.Success) {
				t.Fatal("the first Done is the one that counts")
			}
		}
		if got := c.LoadStats(); loadOf(t, c, "node-000").InFlight != 5 || got.Total != 5 || got.Acquired != 15 {
			t.Fatalf("in flight %d, total %d, acquired %d; want 5, 5, 15", loadOf(t, c, "node-000").InFlight, got.Total, got.Acquired)
		}
		// A node that stays keeps its load, whatever joins.
		mustGive(t, f, l.ring(append(three, topology.Node{ID: "x", Weight: 1})...))
		if got := loadOf(t, c, "node-000").InFlight; got != 5 {
			t.Fatalf("in flight %d after another joined, want 5", got)
		}
		// Only the address changes: another process.
		three[0].Addr = "10.8.8.8:1"
		mustGive(t, f, l.ring(three...))
		if got := loadOf(t, c, "node-000").InFlight; got != 0 {
			t.Fatalf("in flight %d at another address, want 0", got)
		}
		c.Close()
		for _, tk := range fresh {
			if !tk.Done(sdk.Failure) {
				t.Fatal("a Done after Close does not count")
			}
		}
	}
}

// The same at random, by many: loads are never negative, the total is the sum.
func TestBound02AtRandom(t *testing.T) {
	for name, opts := range map[string][]sdk.Option{
		"plain":  {sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25})},
		"lag":    {sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25, TotalEvery: 32})},
		"policy": {sdk.WithBalance(sdk.Balance{Replicas: true}), sdk.WithResilience(sdk.Resilience{})},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t)
			c, f := start(t, opts...)
			all := nodes(6)
			spec := topology.Spec{Algorithm: topology.Maglev, TableSize: 251, Replicas: 2}
			mustGive(t, f, l.publish(spec, all...))
			var wg sync.WaitGroup
			stop := make(chan struct{})
			for w := range 4 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(w), 1))
					var open []*sdk.Ticket
					for k := 0; ; k++ {
						select {
						case <-stop:
							for _, tk := range open {
								tk.Done(sdk.Success)
							}
							return
						default:
						}
						tk := new(sdk.Ticket)
						var err error
						if k%5 == 0 && name == "policy" {
							*tk, err = c.AcquireAny(t.Context(), 1)
						} else {
							*tk, err = c.Acquire(t.Context(), fmt.Sprint(rng.IntN(500)), rng.Int64N(100)+1)
						}
						if err == nil {
							open = append(open, tk)
						} else if !errors.Is(err, sdk.ErrUnavailable) {
							t.Error(err)
							return
						}
						for len(open) > rng.IntN(8) {
							i := rng.IntN(len(open))
							open[i].Done(sdk.Outcome(rng.IntN(5)))
							open[i].Done(sdk.Success)
							open = append(open[:i], open[i+1:]...)
						}
					}
				})
			}
			rng := rand.New(rand.NewPCG(9, 9))
			for range 200 {
				some := make([]topology.Node, 0, 6)
				for _, n := range all {
					if rng.IntN(4) > 0 || n.ID == "node-000" {
						n.State = []topology.State{0, 0, 0, topology.StateDraining, topology.StateDown}[rng.IntN(5)]
						some = append(some, n)
					}
				}
				some[0].State = topology.StateActive
				mustGive(t, f, l.publish(spec, some...))
				for _, n := range c.LoadStats().Nodes {
					if n.InFlight < 0 {
						t.Errorf("%s has %d in flight", n.ID, n.InFlight)
					}
				}
			}
			mustGive(t, f, l.publish(spec, all...))
			close(stop)
			wg.Wait()
			s := c.LoadStats()
			for _, n := range s.Nodes {
				if n.InFlight != 0 {
					t.Errorf("%s has %d in flight, nothing is", n.ID, n.InFlight)
				}
			}
			if s.Total != 0 || s.Repeated != 0 {
				t.Errorf("total %d, repeated %d with nothing in flight", s.Total, s.Repeated)
			}
		})
	}
}

// A bound along the key's order: who is over its cap is passed over, and the
// statistics say so.
func TestBoundGoesAlongTheOrder(t *testing.T) {
	for _, algorithm := range topology.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			l := newLine(t)
			c, f := start(t)
			mustGive(t, f, l.publish(topology.Spec{Algorithm: algorithm, BoundedLoad: 1.5}, nodes(4)...))
			order, err := c.RouteN(nil, "hot", 4)
			if err != nil {
				t.Fatal(err)
			}
			rank := map[string]int{}
			for i, r := range order {
				rank[r.ID()] = i
			}
			seen := map[int]int64{}
			for k := range int64(16) {
				tk := acquire(t, c, "hot", 1)
				i := rank[tk.ID()]
				// The first of the order that is under ceil(1.5 (k + 1) / 4).
				most := (3*(k+1) + 7) / 8
				for j := range i {
					if seen[j] < most {
						t.Fatalf("request %d went to the %d-th, the %d-th has %d of %d", k, i, j, seen[j], most)
					}
				}
				if seen[i] >= most {
					t.Fatalf("request %d: the %d-th has %d already, its cap is %d", k, i, seen[i], most)
				}
				if tk.Route().Detour() != (i > 0) {
					t.Fatalf("detour is %v at rank %d", tk.Route().Detour(), i)
				}
				seen[i]++
			}
			s := c.LoadStats()
			if s.Acquired != 16 || s.Diverted != uint64(16-seen[0]) || s.OverCap != 0 || s.Total != 16 || s.Probes <= 16 || s.Refusals < s.Diverted {
				t.Fatalf("%+v", s)
			}
			if got, want := s.HomeRate(), float64(seen[0])/16; got != want {
				t.Fatalf("home rate %v, want %v", got, want)
			}
		})
	}
}

// Among few candidates all may be full: the least loaded takes it, over its cap.
func TestBoundWithin(t *testing.T) {
	l := newLine(t)
	c, f := start(t, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1, Within: 2}))
	mustGive(t, f, l.ring(nodes(10)...))
	seen := map[string]int{}
	for range 20 {
		seen[acquire(t, c, "hot", 1).ID()]++
	}
	order, _ := c.RouteN(nil, "hot", 2)
	if seen[order[0].ID()] != 10 || seen[order[1].ID()] != 10 {
		t.Fatalf("%v; want 10 at each of the first two", seen)
	}
	if s := c.LoadStats(); s.OverCap == 0 {
		t.Fatal("nobody was over the cap")
	}
}

// Costs decades apart: a request dearer than the cap finds a node.
func TestCosts(t *testing.T) {
	l := newLine(t)
	c, f := start(t, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25}))
	mustGive(t, f, l.ring(nodes(4)...))
	big := acquire(t, c, "hot", 100_000)
	for range 50 {
		small := acquire(t, c, "hot", 10)
		if small.ID() == big.ID() {
			t.Fatal("a small request went where all the load is")
		}
		small.Done(sdk.Success)
	}
	big.Done(sdk.Success)
	if got := c.LoadStats().Total; got != 0 {
		t.Fatalf("total %d", got)
	}
}

// Requests without a key, by a policy: what is down gets nothing, the others its
// share. Field cases lb-08 (2) and weight-06 (2).
func TestPolicyOverAll(t *testing.T) {
	l := newLine(t)
	c, f := start(t, sdk.WithBalance(sdk.Balance{Policy: func(s *balance.Set) (balance.Picker, error) { return wrr.NewSmooth(s, wrr.SmoothConfig{}) }}))
	shares := func(picks int) map[string]int {
		t.Helper()
		seen := map[string]int{}
		for range picks {
			tk, err := c.AcquireAny(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			seen[tk.ID()]++
			tk.Done(sdk.Success)
		}
		return seen
	}
	weights := nodes(3)
	weights[0].Weight, weights[1].Weight, weights[2].Weight = 2, 3, 4
	mustGive(t, f, l.ring(weights...))
	check := func(seen map[string]int, want map[string]float64, picks int) {
		t.Helper()
		for id, share := range want {
			if got := float64(seen[id]) / float64(picks); got < share*0.99-1e-9 || got > share*1.01+1e-9 {
				t.Errorf("%s got %.4f, want %.4f", id, got, share)
			}
		}
	}
	want := map[string]float64{"node-000": 2. / 9, "node-001": 3. / 9, "node-002": 4. / 9}
	check(shares(9000), want, 9000)
	weights[1].State = topology.StateDown
	mustGive(t, f, l.ring(weights...))
	check(shares(9000), map[string]float64{"node-000": 2. / 6, "node-001": 0, "node-002": 4. / 6}, 9000)
	weights[1].State = topology.StateActive
	mustGive(t, f, l.ring(weights...))
	check(shares(9000), want, 9000)
}

func TestLB08(t *testing.T) {
	l := newLine(t)
	c, f := start(t, sdk.WithBalance(sdk.Balance{}), sdk.WithResilience(sdk.Resilience{Retry: retry.Config{Attempts: 2}}))
	five := nodes(5)
	five[1].State = topology.StateDown
	mustGive(t, f, l.ring(five...))
	seen := map[string]float64{}
	for range 100_000 {
		tk, err := c.AcquireAny(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		seen[tk.ID()]++
		tk.Done(sdk.Success)
	}
	for id, n := range seen {
		if id == "node-001" || n < 24_000 || n > 26_000 {
			t.Errorf("%s got %v of 100000", id, n)
		}
	}
	// The only node is on the list of those tried: asked again rather than never.
	mustGive(t, f, l.ring(nodes(1)...))
	for _, call := range []sdk.Call{{Any: true}, {Key: "k"}} {
		attempts := 0
		err := c.Do(t.Context(), call, func(context.Context, *sdk.Ticket) error {
			attempts++
			return retry.As(retry.Refused, errors.New("no"))
		})
		if err == nil || attempts != 2 {
			t.Errorf("%+v: %d attempts, %v", call, attempts, err)
		}
	}
}
