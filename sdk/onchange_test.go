package sdk_test

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// seen is what one callback was called with.
type seen struct {
	mu       sync.Mutex
	versions []uint64
	last     *topology.Topology
}

func (s *seen) note(t *testing.T, ch sdk.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch.From != s.last {
		t.Errorf("from %v, but the call before was to %v", ch.From, s.last)
	}
	s.last = ch.To
	s.versions = append(s.versions, ch.To.Version().Seq)
}

// TestWatch07: 1000 versions in 5 s, to callbacks of every temper. Lookups go by
// the newest version throughout; every callback sees versions in order and the
// last one.
func TestWatch07(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const versions = 1000
		spec := topology.Spec{Algorithm: topology.Ring, VNodes: 4}
		l := newLine(t)
		c, f := start(t)
		subscribers := make([]*seen, 10)
		release := make(chan struct{})
		for i := range subscribers {
			s := &seen{}
			subscribers[i] = s
			var cancel func()
			ready := make(chan struct{})
			cancel = c.OnChange(func(ch sdk.Change) {
				<-ready
				s.note(t, ch)
				switch i {
				case 0:
					time.Sleep(10 * time.Second)
				case 1:
					<-release // as good as never
				case 2:
					cancel()
				case 3:
					if r, err := c.Route("k"); err != nil || r.Version().Compare(ch.To.Version()) < 0 {
						t.Errorf("lookup in a callback of %v: %v, %v", ch.To.Version(), r.Version(), err)
					}
				case 4:
					panic("a callback that fails")
				case 5:
					defer c.OnChange(func(sdk.Change) {})()
				}
			})
			close(ready)
		}
		for i := range versions {
			next := l.publish(spec, nodes(4-i%2)...) // node x, the last, comes and goes
			mustGive(t, f, next)
			if r, err := c.Route("k"); err != nil || r.Version() != next.Version() {
				t.Fatalf("lookup after version %v: %v, %v", next.Version(), r.Version(), err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(30 * time.Second)
		close(release)
		synctest.Wait()
		for i, s := range subscribers {
			if i == 2 {
				if len(s.versions) != 1 {
					t.Errorf("a callback that unsubscribed was called %d times", len(s.versions))
				}
				continue
			}
			if !slices.IsSorted(s.versions) || s.last.Version().Seq != versions {
				t.Errorf("callback %d: %v", i, s.versions)
			}
			if s.last.Index("node-003") >= 0 {
				t.Errorf("callback %d: the removed node is still there", i)
			}
			for j := 1; j < len(s.versions); j++ {
				if s.versions[j] == s.versions[j-1] {
					t.Errorf("callback %d: version %d twice", i, s.versions[j])
				}
			}
		}
		if n := len(subscribers[0].versions); n > 3 {
			t.Errorf("a callback of 10 s was called %d times in 35 s", n)
		}
	})
}

func TestOnChangeLate(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	topo := l.ring(nodes(2)...)
	mustGive(t, f, topo)
	got := make(chan sdk.Change, 1)
	cancel := c.OnChange(func(ch sdk.Change) { got <- ch })
	if ch := <-got; ch.From != nil || ch.To != topo {
		t.Fatalf("first call: %+v", ch)
	}
	cancel()
	cancel() // twice is fine
	mustGive(t, f, l.ring(nodes(3)...))
	c.Close()
	if len(got) != 0 {
		t.Fatal("called after cancel")
	}
	c.OnChange(func(sdk.Change) { t.Error("called after Close") })()
}

// TestCancelPending: what waits for a callback to return is not delivered after
// cancel.
func TestCancelPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t)
		release := make(chan struct{})
		calls := 0
		cancel := c.OnChange(func(sdk.Change) { calls++; <-release })
		mustGive(t, f, l.ring(nodes(1)...))
		synctest.Wait()
		mustGive(t, f, l.ring(nodes(2)...))
		cancel()
		close(release)
		synctest.Wait()
		if calls != 1 {
			t.Fatalf("called %d times", calls)
		}
	})
}

// TestCloseInside: a callback may close its client, also after it unsubscribed;
// everybody else's Close waits for callbacks that are running.
func TestCloseInside(t *testing.T) {
	for _, unsubscribe := range []bool{false, true} {
		l := newLine(t)
		c, f := start(t)
		closed := make(chan struct{})
		var cancel func()
		ready := make(chan struct{})
		cancel = c.OnChange(func(sdk.Change) {
			<-ready
			if unsubscribe {
				cancel()
			}
			c.Close()
			close(closed)
		})
		close(ready)
		mustGive(t, f, l.ring(nodes(2)...))
		<-closed
		if _, err := c.Route("k"); !errors.Is(err, sdk.ErrClosed) {
			t.Fatalf("after Close in a callback: %v", err)
		}
	}
}

// TestClosesInside: two callbacks that close at once do not wait for each other.
func TestClosesInside(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	var both, done sync.WaitGroup
	both.Add(2)
	done.Add(2)
	for range 2 {
		c.OnChange(func(sdk.Change) {
			both.Done()
			both.Wait()
			c.Close()
			done.Done()
		})
	}
	mustGive(t, f, l.ring(nodes(2)...))
	done.Wait()
}

func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t)
		var ended atomic.Bool
		c.OnChange(func(sdk.Change) { time.Sleep(time.Minute); ended.Store(true) })
		mustGive(t, f, l.ring(nodes(2)...))
		synctest.Wait()
		var closes sync.WaitGroup
		for range 3 {
			closes.Go(func() {
				c.Close()
				if !ended.Load() {
					t.Error("Close returned while a callback was running")
				}
			})
		}
		closes.Wait()
	})
}

// TestGoexit: a callback that ends its goroutine, as t.FailNow does, is not
// called again and leaves nothing behind.
func TestGoexit(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	var calls atomic.Int32
	c.OnChange(func(sdk.Change) { calls.Add(1); runtime.Goexit() })
	mustGive(t, f, l.ring(nodes(1)...))
	mustGive(t, f, l.ring(nodes(2)...))
	c.Close()
	if n := calls.Load(); n > 1 {
		t.Fatalf("called %d times", n)
	}
}
