package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/resilience/retry"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// A retry goes to another node; what is done twice is only what may be.
func TestDoGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t, sdk.WithResilience(sdk.Resilience{}))
		mustGive(t, f, l.ring(nodes(3)...))
		f2 := func(kind retry.Kind, mark retry.Mark, want int) {
			t.Helper()
			tried := map[string]bool{}
			_ = c.Do(t.Context(), sdk.Call{Key: "k", Mark: mark}, func(_ context.Context, tk *sdk.Ticket) error {
				tried[tk.ID()] = true
				return retry.As(kind, errors.New("no"))
			})
			if len(tried) != want {
				t.Errorf("%v, mark %d: %d nodes tried, want %d", kind, mark, len(tried), want)
			}
		}
		f2(retry.Refused, retry.Plain, 3)
		f2(retry.Timeout, retry.Plain, 1)
		time.Sleep(time.Minute) // for the budget
		f2(retry.Timeout, retry.Idempotent, 3)
		if got := c.LoadStats(); got.Total != 0 {
			t.Fatalf("total %d after all calls", got.Total)
		}
		func() {
			defer func() { _ = recover() }()
			_ = c.Do(t.Context(), sdk.Call{Key: "k"}, func(context.Context, *sdk.Ticket) error { panic("oh") })
		}()
		if got := c.LoadStats(); got.Total != 0 {
			t.Fatalf("total %d after a panic", got.Total)
		}
	})
}

// A node that fails is passed over along the order, and taken back when a probe
// finds it well; the mapping does not change (P5).
func TestEjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		sick := true
		var mu sync.Mutex
		var events []outlier.Event
		c, f := start(t, sdk.WithResilience(sdk.Resilience{
			Probe: func(context.Context, topology.Node) error {
				mu.Lock()
				defer mu.Unlock()
				if sick {
					return errors.New("still sick")
				}
				return nil
			},
			OnEject: func(e outlier.Event) { mu.Lock(); defer mu.Unlock(); events = append(events, e) },
		}))
		mustGive(t, f, l.ring(nodes(5)...))
		digest := l.table.Digest()
		key := owned(t, c, "node-002")
		for range 5 {
			acquire(t, c, key, 1).Done(sdk.Failure)
		}
		synctest.Wait()
		tk := acquire(t, c, key, 1)
		if tk.ID() == "node-002" || !tk.Route().Detour() {
			t.Fatalf("five failures in a row, and the next request goes to %s", tk.ID())
		}
		tk.Done(sdk.Success)
		if r, _ := c.Route(key); r.ID() != "node-002" || l.table.Digest() != digest {
			t.Fatal("ownership moved")
		}
		if !loadOf(t, c, "node-002").Ejected || loadOf(t, c, "node-002").Cap != 0 && loadOf(t, c, "node-002").Cap < 1<<62 {
			t.Fatalf("%+v", loadOf(t, c, "node-002"))
		}
		mu.Lock()
		sick = false
		mu.Unlock()
		time.Sleep(10 * time.Second)
		if tk := acquire(t, c, key, 1); tk.ID() != "node-002" {
			t.Fatalf("ten seconds after it is well, requests go to %s", tk.ID())
		}
		mu.Lock()
		defer mu.Unlock()
		if len(events) != 2 || !events[0].Ejected || events[1].Ejected {
			t.Fatalf("events %+v", events)
		}
	})
}

// Callbacks that panic, or call the client, stop nothing.
func TestCallbacksOfResilience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		var c *sdk.Client
		told := 0
		c, f := start(t, sdk.WithHooks(sdk.Hooks{OnDrained: func(sdk.Departed) { panic("drained") }}), sdk.WithResilience(sdk.Resilience{
			Probe:   func(context.Context, topology.Node) error { panic("probe") },
			OnEject: func(outlier.Event) { told++; _ = c.State(); _ = c.LoadStats(); panic("ejected") },
		}))
		three := nodes(6)
		mustGive(t, f, l.ring(three...))
		key := owned(t, c, "node-002")
		for range 5 {
			acquire(t, c, key, 1).Done(sdk.Failure)
		}
		three[3].State = topology.StateDraining
		mustGive(t, f, l.ring(three...))
		three[2].State = topology.StateDown // WentDown is told, too, from within a version's arrival
		mustGive(t, f, l.ring(three...))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if told != 2 {
			t.Fatalf("%d events", told)
		}
		for i := range 100 {
			acquire(t, c, fmt.Sprint(i), 1).Done(sdk.Success)
		}
	})
}

// With every node failing, somebody is used all the same: panic mode.
func TestEverythingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t, sdk.WithResilience(sdk.Resilience{NoBreaker: true}))
		mustGive(t, f, l.ring(nodes(6)...))
		for i := range 600 {
			acquire(t, c, fmt.Sprint(i), 1).Done(sdk.Failure)
			time.Sleep(time.Millisecond)
		}
		ejected := 0
		for _, n := range c.LoadStats().Nodes {
			if n.Ejected {
				ejected++
			}
		}
		if ejected != 2 {
			t.Fatalf("%d of 6 ejected, the limit is a third", ejected)
		}
	})
}
