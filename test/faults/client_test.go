//go:build linux

package faults

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// taken is a version that a client took, and when.
type taken struct {
	ref topology.Ref
	at  time.Time
}

// client is a client of the SDK that routes all the time.
type client struct {
	name   string
	sdk    *sdk.Client
	routes atomic.Uint64

	mu       sync.Mutex
	taken    []taken
	wrong    []string             // what must not be
	lastSeen map[string]time.Time // when a request went to a node last
}

// follow follows source until the test ends.
func (e *env) follow(t *testing.T, name string, source sdk.Source, err error) *client {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{name: name, lastSeen: map[string]time.Time{}}
	c.sdk, err = sdk.New(source, sdk.WithHooks(sdk.Hooks{OnTaken: c.took}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := timeout(t, time.Minute)
	defer cancel()
	if err := c.sdk.WaitReady(ctx); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go c.route(stop, stopped)
	t.Cleanup(func() {
		close(stop)
		<-stopped
		c.sdk.Close()
	})
	return c
}

// took checks that a version lies ahead.
func (c *client) took(from, to topology.Ref, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = append(c.taken, taken{to, time.Now()})
	if from.IsZero() {
		return
	}
	same := from.ClusterID == to.ClusterID && from.Version.Epoch == to.Version.Epoch && from.History == to.History && from.Version.Seq < to.Version.Seq
	raised := from.ClusterID == to.ClusterID && from.Version.Epoch < to.Version.Epoch && from.History != to.History
	if !same && !raised {
		c.wrong = append(c.wrong, fmt.Sprintf("from %s of %s to %s of %s", from, from.History, to, to.History))
	}
}

// route routes a key every half millisecond.
func (c *client) route(stop, stopped chan struct{}) {
	defer close(stopped)
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		r, err := c.sdk.Route(fmt.Sprint("key-", n))
		now := time.Now()
		c.routes.Add(1)
		c.mu.Lock()
		if err != nil {
			c.wrong = append(c.wrong, "route: "+err.Error())
		} else {
			c.lastSeen[r.ID()] = now
		}
		c.mu.Unlock()
	}
}

// reached returns when the client first held v or a later version.
func (c *client) reached(v topology.Version) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, step := range c.taken {
		if step.ref.Version.Compare(v) >= 0 {
			return step.at, true
		}
	}
	return time.Time{}, false
}

// seen returns when a request went to the node last.
func (c *client) seen(node string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastSeen[node]
}

// owns reports whether the node owns keys in the client's topology.
func (c *client) owns(node string) bool {
	top := c.sdk.Topology()
	i := top.Index(node)
	return i >= 0 && top.Node(i).OwnerWeight() > 0
}

// check reports what went wrong, and enters every version that the client took
// into digests: there must be only one of each.
func (c *client) check(t *testing.T, digests map[topology.Ref]topology.Digest) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, text := range c.wrong {
		if i < 5 {
			t.Errorf("%s: %s", c.name, text)
		}
	}
	for _, step := range c.taken {
		enter(t, c.name, digests, step.ref)
	}
	if len(c.taken) < 2 || c.routes.Load() == 0 {
		t.Errorf("%s took %d versions and routed %d keys: the experiment shows nothing", c.name, len(c.taken), c.routes.Load())
	}
}

func enter(t *testing.T, name string, digests map[topology.Ref]topology.Digest, ref topology.Ref) {
	t.Helper()
	number := ref
	number.Digest = topology.Digest{}
	if d, ok := digests[number]; ok && d != ref.Digest {
		t.Errorf("%s: %s has another digest elsewhere, %s", name, ref, d)
	}
	digests[number] = ref.Digest
}
