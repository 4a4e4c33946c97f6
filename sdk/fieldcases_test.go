package sdk_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Field case sdk-01: lookups of all kinds, subscriptions and Close, while versions
// alternate between 10 and 11 nodes. No nil, no panic, nothing that was handed out
// changes. Run with -race.
func TestSDK01(t *testing.T) {
	l := newLine(t)
	c, f := start(t, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25}))
	spec := topology.Spec{Algorithm: topology.Maglev, TableSize: 251, Replicas: 3}
	mustGive(t, f, l.publish(spec, nodes(10)...))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	type kept struct{ got, copied []topology.Node }
	var mu sync.Mutex
	var all []kept
	look := func(k int) error {
		key := fmt.Sprint("key", k%500)
		r, err := c.Route(key)
		if err != nil || r.ID() == "" || r.Node().ID != r.ID() || r.Topology().Index(r.ID()) < 0 {
			return fmt.Errorf("route %+v, %w", r.Node(), err)
		}
		list, err := c.RouteN(nil, key, 3)
		if err != nil || len(list) != 3 || list[0].Version() != list[2].Version() {
			return fmt.Errorf("%d routes, %w", len(list), err)
		}
		tk, err := c.Acquire(t.Context(), key, 1)
		if err != nil || tk.Route().Topology().Index(tk.ID()) < 0 {
			return fmt.Errorf("acquire: %w", err)
		}
		tk.Done(sdk.Success)
		if got := r.Topology().Nodes(); k%100 == 0 {
			mu.Lock()
			all = append(all, kept{got, slices.Clone(got)})
			mu.Unlock()
		}
		return nil
	}
	for w := range 8 {
		wg.Go(func() {
			for k := w; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				err := look(k)
				if errors.Is(err, sdk.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					c.OnChange(func(ch sdk.Change) { _ = ch.To.Len() })()
					_ = c.LoadStats()
					runtime.Gosched()
				}
			}
		})
	}
	for k := range 100 {
		mustGive(t, f, l.publish(spec, nodes(10+k%2)...))
	}
	c.Close()
	close(stop)
	wg.Wait()
	for _, k := range all {
		if diff := cmp.Diff(k.copied, k.got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// Field case sdk-02: a source that fails or sends what cannot be used changes
// nothing; a version without nodes, or with none that is up, is obeyed; and all is
// well again with the next one, at once.
func TestSDK02(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25}), sdk.WithBalance(sdk.Balance{}), sdk.WithResilience(sdk.Resilience{}))
		works := func(when string) {
			t.Helper()
			for i := range 50 {
				if _, err := c.Route(fmt.Sprint(i)); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				acquire(t, c, fmt.Sprint(i), 1).Done(sdk.Success)
				tk, err := c.AcquireAny(t.Context(), 1)
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				tk.Done(sdk.Success)
			}
		}
		mustGive(t, f, l.ring(nodes(5)...))
		works("before")
		f.report(errors.New("store unreachable"))
		f.stop() // the watch ends
		works("without a source")
		<-f.haves
		<-f.haves
		foreign := newLine(t).ring(nodes(1)...)
		if err := f.give(foreign); !errors.Is(err, sdk.ErrCluster) {
			t.Fatal(err)
		}
		works("after another cluster's version")
		time.Sleep(time.Hour)
		works("an hour later")
		if c.Age() < time.Hour {
			t.Fatalf("age %v", c.Age())
		}
		mustGive(t, f, l.ring())
		if _, err := c.Route("k"); !errors.Is(err, sdk.ErrNoNodes) {
			t.Fatal(err)
		}
		if _, err := c.Acquire(t.Context(), "k", 1); !errors.Is(err, sdk.ErrNoNodes) {
			t.Fatal(err)
		}
		if _, err := c.AcquireAny(t.Context(), 1); !errors.Is(err, sdk.ErrNoNodes) {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), sdk.Call{Key: "k"}, nil); !errors.Is(err, sdk.ErrNoNodes) {
			t.Fatal(err)
		}
		mustGive(t, f, l.ring(nodes(5)...))
		works("with nodes again")
		down := nodes(5)
		for i := range down {
			down[i].State = topology.StateDown
		}
		mustGive(t, f, l.ring(down...))
		tk, err := c.Acquire(t.Context(), "k", 1)
		if r, _ := c.Route("k"); err != nil || tk.ID() != r.ID() {
			t.Fatalf("all down: to %s, %v; the owner takes it, as Route says", tk.ID(), err)
		}
		tk.Done(sdk.Failure)
		mustGive(t, f, l.ring(nodes(5)...))
		works("up again")
	})
}
