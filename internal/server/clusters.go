package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// clusters holds a hub for every cluster of the directory, and runs its
// controller.
type clusters struct {
	directory membership.Directory
	lister    lister
	elector   membership.Elector // nil = no controllers
	id        string             // of this process, in elections
	admission membership.AdmissionConfig
	timeout   time.Duration
	dir       string // for what was served; "" = in memory only
	logger    hclog.Logger

	ctx     context.Context // ends all hubs
	leading context.Context // ends all controllers, before requests in flight have ended

	mu      sync.Mutex
	names   []string // as last read
	hubs    map[string]*hub
	read    chan struct{} // closed once the directory has been read
	stopped bool
	running sync.WaitGroup // goroutines of hubs; Add only under mu while not stopped
}

// run follows the directory until ctx ends, and returns when all hubs have
// ended.
func (c *clusters) run(ctx context.Context) {
	defer c.stopAll()
	for {
		err := c.directory.WatchNames(ctx, func(names []string) error { c.sync(names); return nil })
		if ctx.Err() != nil {
			return
		}
		c.logger.Warn("watch of the directory ended; starting it again", "error", err)
		if pause(ctx, time.Second) != nil {
			return
		}
	}
}

// sync makes the hubs those of names. A hub that is not among them, but whose
// cluster is there, was made for a cluster that was created a moment ago; it
// stays, and drop looks again when the cluster is gone.
func (c *clusters) sync(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = names
	for name, h := range c.hubs {
		if !slices.Contains(names, name) && h.isGone() {
			c.removeLocked(h)
		}
	}
	for _, name := range names {
		c.ensureLocked(name)
	}
	select {
	case <-c.read:
	default:
		close(c.read)
	}
}

// drop is called by a hub whose cluster does not exist (any more).
func (c *clusters) drop(h *hub) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hubs[h.name] == h && !slices.Contains(c.names, h.name) {
		c.removeLocked(h)
	}
}

func (c *clusters) removeLocked(h *hub) {
	delete(c.hubs, h.name)
	h.stop()
}

// ensure returns the hub of a cluster that is known to exist, and starts it if
// it is not there yet. nil: the server is stopping.
func (c *clusters) ensure(name string) *hub {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ensureLocked(name)
}

func (c *clusters) ensureLocked(name string) *hub {
	if h := c.hubs[name]; h != nil || c.stopped {
		return h
	}
	logger := c.logger.With("cluster", name)
	h := newHub(name, c.directory.Open(name), c.timeout, logger)
	h.id, h.kept.dir = c.id, c.dir
	ctx, stop := context.WithCancel(c.ctx)
	h.stop = stop
	h.onLost = func() { c.drop(h) }
	c.hubs[name] = h
	c.running.Go(func() { h.run(ctx) })
	c.running.Go(func() { h.confirm(ctx) })
	if c.elector != nil {
		c.running.Go(func() {
			ruling, end := context.WithCancel(ctx)
			defer end()
			defer context.AfterFunc(c.leading, end)()
			h.control(ruling, c.elector, c.id, c.admission)
		})
	}
	return h
}

// get returns the hub of a cluster. A name that has no hub may be one that
// another process created a moment ago, so the store is asked.
func (c *clusters) get(ctx context.Context, name string) (*hub, error) {
	if err := topology.ValidateClusterName(name); err != nil {
		return nil, &api.Error{Code: api.CodeInvalid, Message: err.Error()}
	}
	c.mu.Lock()
	h := c.hubs[name]
	c.mu.Unlock()
	if h != nil {
		return h, nil
	}
	names, err := c.lister.list(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		return nil, noCluster(name)
	}
	if h = c.ensure(name); h == nil {
		return nil, errStopping()
	}
	return h, nil
}

func errStopping() error {
	return api.Errorf(api.CodeStopping, "ask another server, or this one again in a moment", "the server is shutting down")
}

// list returns all hubs by name.
func (c *clusters) list() []*hub {
	c.mu.Lock()
	defer c.mu.Unlock()
	hubs := make([]*hub, 0, len(c.hubs))
	for _, h := range c.hubs {
		hubs = append(hubs, h)
	}
	slices.SortFunc(hubs, func(a, b *hub) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return hubs
}

func (c *clusters) stopAll() {
	c.mu.Lock()
	c.stopped = true
	for _, h := range c.hubs {
		c.removeLocked(h)
	}
	c.mu.Unlock()
	c.running.Wait()
}
