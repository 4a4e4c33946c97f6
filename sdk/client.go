package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Client follows the topology of one cluster and routes keys by it. All methods
// are safe for concurrent use. Make one with New.
type Client struct {
	// snap is never nil. It is written by install, overlayChanged and Close alone.
	snap atomic.Pointer[snapshot]

	src    Source
	logger hclog.Logger
	hooks  Hooks
	saver  *saver // nil = no snapshot file
	fleet  *fleet

	cancel context.CancelFunc // ends the watch
	done   chan struct{}      // closed when the watch has ended
	ready  chan struct{}      // closed with the first topology
	closed chan struct{}      // closed by Close

	taking  sync.Mutex  // held while an offered topology is looked at
	tenures atomic.Bool // tables come with what OwnedSince looks at

	mu     sync.Mutex // guards what follows, and the order of writes to snap
	pinned topology.ClusterID
	state  State
	logged string // last problem logged
	reset  bool   // the next topology is taken whatever it is; see Reset

	overlay overlay
	// rewatch ends the Watch that runs, so that another one begins; nil
	// before the first.
	rewatch context.CancelFunc
	subs    map[*subscriber]struct{}

	calls   sync.WaitGroup // goroutines of subscribers; Add only under mu while not closed
	callers callers        // the same, by their ids
	hooking callers        // goroutines that run hooks
}

// New returns a client that follows src. It does no I/O and never waits: it
// starts one goroutine, which watches src until Close (and two with
// WithSnapshot). Lookups return
// ErrNotReady until the first topology is there; see WaitReady. What loads,
// slow starts and drains need of time takes another goroutine, from when there is
// such a thing. The error says that src is nil, or what is wrong with an option.
func New(src Source, opts ...Option) (*Client, error) {
	if src == nil {
		return nil, errors.New("sdk: source is nil; make one with etcdsource.New or httpsource.New")
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if o.logger == nil {
		o.logger = hclog.NewNullLogger()
	}
	f, err := newFleet(&o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{src: src, fleet: f, logger: o.logger, pinned: o.pinned, cancel: cancel,
		done: make(chan struct{}), ready: make(chan struct{}), closed: make(chan struct{}),
		subs: make(map[*subscriber]struct{})}
	c.hooks = c.all(o.hooks, o.plugged)
	c.snap.Store(errorSnapshot(ErrNotReady))
	c.startSaver(o.snapshot)
	c.overlay.expiry = cmp.Or(o.healthExpiry, DefaultHealthExpiry)
	go c.watch(WithHealthReport(WithReport(ctx, c.problem), c.health), o.reset)
	return c, nil
}

// WaitReady waits until the client holds a topology, be it one without nodes.
// Errors: ErrClosed, or an error that wraps ErrNotReady, ctx.Err() and the last
// problem, if there was one.
func (c *Client) WaitReady(ctx context.Context) error {
	select {
	case <-c.closed:
		return ErrClosed
	case <-c.ready:
		if c.isClosed() { // both: select chose at random
			return ErrClosed
		}
		return nil
	case <-ctx.Done():
	}
	if problem := c.State().Problem; problem != nil {
		return fmt.Errorf("%w: %w; last problem: %w", ErrNotReady, ctx.Err(), problem)
	}
	return fmt.Errorf("%w: %w", ErrNotReady, ctx.Err())
}

// Topology returns the topology that lookups go by, or nil if there is none.
func (c *Client) Topology() *topology.Topology { return c.snap.Load().topology() }

// Close ends the watch and all callbacks and waits for them, so that no
// goroutine of the client is left and the snapshot file has the newest version, save that a callback may call Close itself:
// then it waits for the watch alone, and each callback that is running ends
// with its call; in a hook or a probe it waits for nothing. Lookups return ErrClosed from now on; Routes got before stay
// valid. Close may be called more than once; the error is always nil.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.isClosed() {
		close(c.closed)
		c.snap.Store(errorSnapshot(ErrClosed))
		c.cancel()
		c.overlay.stop()
		if c.fleet.stop != nil {
			c.fleet.stop()
		}
	}
	for sub := range c.subs {
		sub.stop()
	}
	c.mu.Unlock()
	if c.hooking.inside() { // what there is to wait for may wait for this call
		return nil
	}
	<-c.done
	c.saver.wait()
	c.fleet.ended.Wait()
	if !c.callers.inside() {
		c.calls.Wait()
	}
	return nil
}

func (c *Client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// retryPause is the longest pause before a Watch that returned is called again.
const retryPause = time.Second

func (c *Client) watch(ctx context.Context, reset bool) {
	defer close(c.done)
	c.loadSnapshot()
	if reset {
		c.mu.Lock()
		c.reset = true
		c.mu.Unlock()
	}
	for {
		err := c.watchOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errReset) {
			continue
		}
		if err == nil {
			err = errors.New("sdk: the source stopped watching")
		}
		c.problem(err)
		pause := time.NewTimer(jitter(retryPause, rand.Float64()))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// errReset ends a Watch because of Reset.
var errReset = errors.New("sdk: reset")

// watchOnce watches until the source returns or Reset is called.
func (c *Client) watchOnce(ctx context.Context) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.rewatch = cancel
	c.mu.Unlock()
	err := c.src.Watch(watching, c.claims(), c.offer)
	if watching.Err() != nil {
		return errReset
	}
	return err
}

// jitter spreads d over its upper half; chance is in [0, 1).
func jitter(d time.Duration, chance float64) time.Duration {
	return d/2 + time.Duration(chance*float64(d/2))
}

// offer is what the source calls with a topology, and with nil to confirm the
// one that is held.
func (c *Client) offer(t *topology.Topology) error { return c.consider(t, time.Time{}) }

// consider takes t or says why not. savedAt is zero for what a source brings,
// and when a source last said that it is the newest for a snapshot.
func (c *Client) consider(t *topology.Topology, savedAt time.Time) error {
	c.taking.Lock()
	defer c.taking.Unlock()
	current := c.snap.Load()
	held := c.claims()
	if t == nil {
		return c.confirm(held)
	}
	c.mu.Lock()
	pinned := c.pinned
	c.mu.Unlock()
	v, err := admit(pinned, held, t.Ref(), t.Parent())
	if v == take && current.ref() == t.Ref() { // after a reset
		v = have
	}
	switch v {
	case have:
		c.endReset()
		return c.confirm(t.Ref())
	case refuse:
		return c.refuse(held, t, err)
	}
	start := time.Now()
	table, err := placement.Next(current.table, t)
	if err == nil && table.PlanOnly() {
		err = placement.ErrPlanOnly
	}
	if err != nil {
		return c.refuse(held, t, err)
	}
	if c.tenures.Load() {
		table.PrepareOwnedSince()
	}
	if err := c.install(newSnapshot(table), savedAt); err != nil {
		return err
	}
	c.tookOver(held, t, time.Since(start))
	return nil
}

// install makes s what lookups go by, and tells the subscribers.
func (c *Client) install(s *snapshot, savedAt time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return ErrClosed
	}
	c.lay(s)
	c.plan(s)
	c.snap.Store(s)
	anew := c.reset && savedAt.IsZero() && !c.state.Held.IsZero()
	c.reset = c.reset && !savedAt.IsZero() // the file is not what a reset waits for
	t := s.topology()
	c.pinned = t.ClusterID()
	now := time.Now()
	c.state.took(t, now)
	if savedAt.IsZero() {
		c.saver.keep(t, now)
	} else {
		c.state.fromSnapshot(t, savedAt)
	}
	c.logged = ""
	if c.state.Taken == 1 {
		close(c.ready)
	}
	for sub := range c.subs {
		sub.notify(t, anew)
	}
	return nil
}

func (c *Client) tookOver(from topology.Ref, t *topology.Topology, build time.Duration) {
	c.logger.Info("topology taken", "cluster", t.Cluster(), "version", t.Version(), "from", from.Version,
		"nodes", t.Len(), "cause", t.Cause().Kind, "build", build)
	if c.hooks.OnTaken != nil {
		c.hooks.OnTaken(from, t.Ref(), build)
	}
}

func (c *Client) confirm(held topology.Ref) error {
	if held.IsZero() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.state.confirmed(now)
	c.saver.keep(c.snap.Load().topology(), now)
	c.logged = ""
	return nil
}

func (c *Client) refuse(held topology.Ref, t *topology.Topology, reason error) error {
	err := &RefusedError{Held: held, Offered: t.Ref(), Err: reason}
	c.mu.Lock()
	c.state.Refused++
	c.mu.Unlock()
	c.note(err)
	if c.hooks.OnRefused != nil {
		c.hooks.OnRefused(err)
	}
	return err
}

// problem is told what the source cannot do at the moment.
func (c *Client) problem(err error) {
	c.note(err)
	if c.hooks.OnProblem != nil {
		c.hooks.OnProblem(err)
	}
}

// note keeps a problem for State and logs it, once as long as it repeats.
func (c *Client) note(err error) {
	text := err.Error()
	c.mu.Lock()
	c.state.Problem, c.state.ProblemAt = err, time.Now()
	again := text == c.logged
	c.logged = text
	held := c.state.Held.Version
	c.mu.Unlock()
	if again {
		c.logger.Debug("topology source has a problem still", "error", err, "version", held)
		return
	}
	c.logger.Warn("topology source has a problem; lookups go on as before", "error", err, "version", held)
}
