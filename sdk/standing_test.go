package sdk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/resilience/retry"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// TestCountersOutlive: what was counted stays counted when its node leaves.
func TestCountersOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1, Within: 1}))
		mustGive(t, f, l.ring(nodes(3)...))
		key := owned(t, c, "node-002")
		for range 100 {
			acquire(t, c, key, 1)
		}
		before := c.LoadStats()
		if before.OverCap == 0 || before.Refusals == 0 {
			t.Fatalf("%+v", before)
		}
		mustGive(t, f, l.ring(nodes(2)...))
		check := func(when string) {
			t.Helper()
			after := c.LoadStats()
			if after.Acquired != before.Acquired || after.OverCap != before.OverCap || after.Refusals != before.Refusals || after.Probes != before.Probes {
				t.Errorf("%s: %+v, before %+v", when, after, before)
			}
		}
		check("after")
		time.Sleep(time.Hour)
		mustGive(t, f, l.ring(nodes(1)...))
		check("much later")
	})
}

// TestRetryHasNowhereElse: a retry that goes to the same node, because there is no
// other, is no request that was refused.
func TestRetryHasNowhereElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t, sdk.WithResilience(sdk.Resilience{}))
		mustGive(t, f, l.ring(nodes(1)...))
		attempts := 0
		err := c.Do(t.Context(), sdk.Call{Key: "k"}, func(context.Context, *sdk.Ticket) error {
			if attempts++; attempts == 1 {
				return retry.As(retry.Refused, errors.New("no"))
			}
			return nil
		})
		if s := c.LoadStats(); err != nil || attempts != 2 || s.Unavailable != 0 || s.Acquired != 2 || s.Probes != 2 {
			t.Errorf("%d attempts, %v, %+v", attempts, err, s)
		}
	})
}

// choosy is a policy that serves three nodes or more.
type choosy struct {
	balance.Picker
	picks *int
}

func newChoosy(picks *int) func(*balance.Set) (balance.Picker, error) {
	return func(s *balance.Set) (balance.Picker, error) {
		if s.Len() < 3 {
			return nil, balance.ErrInvalid
		}
		p, err := balance.NewP2C(s, &balance.InFlight{})
		return choosy{p, picks}, err
	}
}

func (p choosy) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	*p.picks++
	return p.Picker.Pick(now, seed, exclude)
}

func (p choosy) Next(s *balance.Set) (balance.Picker, error) { return newChoosy(p.picks)(s) }

// TestPolicyComesBack: a policy that refuses some nodes is asked again for others.
func TestPolicyComesBack(t *testing.T) {
	l := newLine(t)
	picks := 0
	c, f := start(t, sdk.WithBalance(sdk.Balance{Policy: newChoosy(&picks)}))
	for i, n := range []int{2, 3, 2, 4} {
		mustGive(t, f, l.ring(nodes(n)...))
		before := picks
		tk, err := c.AcquireAny(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		tk.Done(sdk.Success)
		if used := picks > before; used != (n > 2) {
			t.Errorf("version %d, %d nodes: the policy was used: %v", i, n, used)
		}
	}
}

// TestSlowStartOfJoining: a slow start begins when the node begins to serve, however
// long it has been known.
func TestSlowStartOfJoining(t *testing.T) {
	for _, first := range []topology.State{topology.StateJoining, topology.StateDown} {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(t)
			c, f := start(t, sdk.WithResilience(sdk.Resilience{}))
			mustGive(t, f, l.ring(nodes(3)...))
			four := nodes(4)
			four[3].State = first
			mustGive(t, f, l.ring(four...))
			time.Sleep(10 * time.Minute)
			mustGive(t, f, l.ring(nodes(4)...))
			time.Sleep(6 * time.Second)
			if w := loadOf(t, c, "node-003").Warming; w > 0.2 {
				t.Errorf("%v, then active for 6 s: %v of its weight", first, w)
			}
			time.Sleep(time.Minute)
			if w := loadOf(t, c, "node-003").Warming; w != 1 {
				t.Errorf("%v, then active for a minute: %v of its weight", first, w)
			}
			if w := loadOf(t, c, "node-000").Warming; w != 1 {
				t.Errorf("a node that was there at first has %v of its weight", w)
			}
		})
	}
}

// TestDrainedAndBack: nobody is told to close connections to a node that is back.
func TestDrainedAndBack(t *testing.T) {
	for _, moved := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var told []string
			l := newLine(t)
			c, f := start(t, sdk.WithHooks(sdk.Hooks{OnDrained: func(d sdk.Departed) { told = append(told, d.Node.Addr) }}))
			three := nodes(3)
			mustGive(t, f, l.ring(three...))
			old := acquire(t, c, owned(t, c, "node-002"), 1)
			mustGive(t, f, l.ring(three[:2]...))
			back := nodes(3)
			if moved {
				back[2].Addr = "10.9.9.9:1"
			}
			mustGive(t, f, l.ring(back...))
			select {
			case <-old.Cut():
				t.Error("it was cut at once")
			case <-time.After(time.Second):
			}
			<-old.Cut() // after the grace, all the same
			time.Sleep(time.Second)
			synctest.Wait()
			if len(told) > 0 != moved {
				t.Errorf("moved %v: told of %v", moved, told)
			}
		})
	}
}

// TestEverybodyDown: with every owner down requests go to them all the same, those
// without a key, too, and not to nodes that own nothing.
func TestEverybodyDown(t *testing.T) {
	for _, opts := range [][]sdk.Option{nil, {sdk.WithResilience(sdk.Resilience{})}} {
		l := newLine(t)
		c, f := start(t, append(opts, sdk.WithBalance(sdk.Balance{Replicas: true}))...)
		all := nodes(4)
		for i := range all {
			all[i].State = topology.StateDown
		}
		all[3].State = topology.StateDraining
		mustGive(t, f, l.ring(all...))
		for range 50 {
			tk, err := c.AcquireAny(t.Context(), 1)
			if err != nil || tk.ID() == "node-003" {
				t.Fatalf("%s, %v", tk.ID(), err)
			}
			if got := loadOf(t, c, tk.ID()).InFlight; got != 1 {
				t.Fatalf("%d in flight", got)
			}
			tk.Done(sdk.Success)
		}
		all[0].State = topology.StateActive
		mustGive(t, f, l.ring(all...))
		for range 50 {
			tk, err := c.AcquireAny(t.Context(), 1)
			if err != nil || tk.ID() != "node-000" {
				t.Fatalf("%s, %v", tk.ID(), err)
			}
			tk.Done(sdk.Success)
		}
	}
}
