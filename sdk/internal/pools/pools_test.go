package pools_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/internal/pools"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is what stands for a pool of connections.
type thing struct {
	mu           sync.Mutex
	id           string
	warm, closed int
}

// world counts what is open.
type world struct {
	mu   sync.Mutex
	made []*thing
	fail error
	slow time.Duration
}

func (w *world) config() pools.Config[*thing] {
	return pools.Config[*thing]{
		Open: func(n topology.Node) (*thing, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.fail != nil {
				return nil, w.fail
			}
			th := &thing{id: n.ID}
			w.made = append(w.made, th)
			return th, nil
		},
		Close: func(th *thing) {
			th.mu.Lock()
			defer th.mu.Unlock()
			th.closed++
		},
		Warm: func(ctx context.Context, th *thing) error {
			select {
			case <-time.After(w.slow):
			case <-ctx.Done():
			}
			th.mu.Lock()
			defer th.mu.Unlock()
			th.warm++
			return ctx.Err()
		},
	}
}

func (w *world) count() (made, open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, th := range w.made {
		th.mu.Lock()
		if th.closed == 0 {
			open++
		}
		th.mu.Unlock()
	}
	return len(w.made), open
}

func (w *world) want(t *testing.T, what string, made, open int) {
	t.Helper()
	synctest.Wait()
	if m, o := w.count(); m != made || o != open {
		t.Errorf("%s: %d made, %d open, want %d and %d", what, m, o, made, open)
	}
}

func use(t *testing.T, p *pools.Pools[*thing], r sdk.Route) pools.Lease[*thing] {
	t.Helper()
	l, err := p.Use(r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func route(t *testing.T, c *sdk.Client, key string) sdk.Route {
	t.Helper()
	r, err := c.Route(key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLife(t *testing.T) { synctest.Test(t, testLife) }

func testLife(t *testing.T) {
	plane := shardtest.New(t, "a", "b", "c")
	plane.Assign("k", "a")
	c := plane.Client()
	w := &world{slow: 300 * time.Millisecond}
	p := pools.New(c, w.config())
	defer p.Close()

	start := time.Now()
	l := use(t, p, route(t, c, "k"))
	if l.Value().id != "a" || l.Node().ID != "a" || l.Value().warm != 1 || time.Since(start) != w.slow {
		t.Errorf("%+v after %v", l.Value(), time.Since(start))
	}
	w.want(t, "all warmed up", 3, 3)
	old := route(t, c, "k")
	plane.Remove("a")
	w.want(t, "a has left, in use", 3, 3)
	l.Done()
	w.want(t, "and let go", 3, 2)

	again := use(t, p, old) // a request by the version before
	w.want(t, "used by an old route", 4, 3)
	again.Done()
	w.want(t, "which is over", 4, 2)

	plane.Add(topology.Node{ID: "a", Weight: 1})
	plane.SetAddr("b", "elsewhere:1")
	time.Sleep(time.Second)
	w.want(t, "a is back, b has moved", 6, 3)

	plane.Assign("k", "c")
	l = use(t, p, route(t, c, "k"))
	plane.Remove("c")
	time.Sleep(29 * time.Second)
	w.want(t, "within the grace", 6, 3)
	time.Sleep(2 * time.Second)
	w.want(t, "after it", 6, 2)
	l.Done()

	w.mu.Lock()
	w.fail = errors.New("cannot")
	w.mu.Unlock()
	plane.Add(topology.Node{ID: "d", Weight: 1})
	plane.Assign("k", "d")
	if _, err := p.Use(route(t, c, "k")); !errors.Is(err, w.fail) {
		t.Errorf("%v", err)
	}
	w.mu.Lock()
	w.fail = nil
	w.mu.Unlock()
	use(t, p, route(t, c, "k")).Done()
	var seen []string
	if err := p.Nodes(func(n topology.Node, th *thing) error { seen = append(seen, n.ID+th.id); return nil }); err != nil || fmt.Sprint(seen) != "[aa bb dd]" {
		t.Errorf("%v, %v", seen, err)
	}
	p.Close()
	p.Close()
	w.want(t, "closed", 7, 0)
	if _, err := p.Use(route(t, c, "k")); !errors.Is(err, pools.ErrClosed) {
		t.Errorf("%v", err)
	}
	for _, th := range w.made {
		if th.closed != 1 {
			t.Errorf("%+v", th)
		}
	}
}

// TestWarmTimeout: a node that does not answer holds up its first request for a
// second and no longer.
func TestWarmTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := shardtest.New(t, "a").Client()
		w := &world{slow: time.Hour}
		p := pools.New(c, w.config())
		defer p.Close()
		start := time.Now()
		use(t, p, route(t, c, "k")).Done()
		if time.Since(start) != time.Second {
			t.Errorf("waited %v", time.Since(start))
		}
	})
}

// TestRace uses pools while nodes come and go: everything opened is closed once
// in the end, and nothing in use is closed but by the grace.
func TestRace(t *testing.T) {
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Rendezvous},
		Nodes: []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 1}}})
	c := plane.Client()
	w := &world{}
	p := pools.New(c, w.config())
	stop := make(chan struct{})
	var users sync.WaitGroup
	for g := range 2 {
		users.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				r, err := c.Route(fmt.Sprint(g, i))
				if err != nil {
					t.Error(err)
					return
				}
				l, err := p.Use(r)
				if err != nil {
					t.Error(err)
					return
				}
				l.Value().mu.Lock()
				if l.Value().closed != 0 || l.Value().id != r.ID() {
					t.Errorf("%s: %+v", r.ID(), l.Value())
				}
				l.Value().mu.Unlock()
				l.Done()
			}
		})
	}
	for range 20 {
		plane.Remove("b")
		plane.Add(topology.Node{ID: "b", Weight: 1})
	}
	close(stop)
	users.Wait()
	p.Close()
	for i, th := range w.made {
		if th.closed != 1 {
			t.Errorf("%d: closed %d times", i, th.closed)
		}
	}
}

func BenchmarkUse(b *testing.B) {
	c := shardtest.New(b, "a", "b", "c").Client()
	p := pools.New(c, (&world{}).config())
	defer p.Close()
	r, err := c.Route("k")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l, err := p.Use(r)
		if err != nil {
			b.Fatal(err)
		}
		l.Done()
	}
}

// TestLeavesBeforeItIsOpen: nodes that leave while they are warmed up, or stand in line for
// it, hold up no change, and are closed once, when they are open.
func TestLeavesBeforeItIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plane := shardtest.New(t, "stays")
		w := &world{slow: time.Hour}
		cfg := w.config()
		cfg.Grace, cfg.WarmTimeout = time.Second, 2*time.Hour
		p := pools.New(plane.Client(), cfg)
		defer p.Close()
		var many []topology.Node
		var ids []string
		for i := range 200 {
			ids = append(ids, fmt.Sprint("n", i))
			many = append(many, topology.Node{ID: ids[i], Addr: ids[i] + ":1", Weight: 1})
		}
		plane.Add(many...)
		begin := time.Now()
		plane.Remove(ids...)
		if took := time.Since(begin); took > 0 {
			t.Errorf("the change waited for %v", took)
		}
		time.Sleep(20 * time.Hour)
		w.want(t, "after all", 201, 1)
		for _, th := range w.made {
			if th.closed > 1 {
				t.Errorf("%s closed %d times", th.id, th.closed)
			}
		}
	})
}
