package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// ControllerConfig says which cluster a Controller serves, and how.
type ControllerConfig struct {
	Store   Store   // of the cluster; required
	Elector Elector // required
	Cluster string  // its name; required
	ID      string  // names this process in messages and in the election; required
	// Settle is how long the controller waits for further edits after one,
	// so that edits that belong together become one version; 0, the default
	// = not at all. Edits that come while it works are batched anyway.
	Settle time.Duration
	// Roster, if it is there, makes the leader admit the nodes that register
	// with the cluster, as Admission says; nil = nodes come by edits only.
	Roster    Roster
	Admission AdmissionConfig
	// Epochs, if it is there, lets the leader present what it has seen, and
	// raise the epoch by itself on trusted evidence that the store went back,
	// at most once in BumpInterval; nil = it only stops publishing.
	Epochs Epochs
	// Recall returns the newest version that this process has kept, for the
	// movement report of a bump; nil, and a nil version = none.
	Recall func() *topology.Topology
	// Logger; nil = none.
	Logger hclog.Logger
	// Now is the clock for Cause.At, which decides nothing; nil = time.Now.
	Now func() time.Time
}

// Controller turns the declared state of one cluster into versions, whenever
// its process is the elected leader. Several may run; one publishes. Make one
// with NewController, start it with Run.
type Controller struct {
	c      ControllerConfig
	log    hclog.Logger
	mu     sync.Mutex
	status Status
	newest topology.Ref     // the newest version seen by this process
	prev   *placement.Table // of the head, kept between versions
	bumped time.Time        // when this process raised the epoch last
	retry  time.Duration    // after which the state is to be looked at again; 0 = not by time
	ramp   ramp             // the transition under way
}

// Status says what a controller does, for readiness and messages.
type Status struct {
	Leading bool             // this process publishes; otherwise another one does
	Since   time.Time        // when Leading changed last
	Version topology.Version // the newest version seen; zero before the first
	// Generation is that of the declared state seen last, Applied what the
	// head answers: equal when all is published.
	Generation, Applied uint64
	// Err says why the declared state is not published although this process
	// leads; nil when all is well. The head stays as it is.
	Err error
	// Held is the number of members that have lost their leases, too many at
	// the same time to be let go; see AdmissionConfig.MassLoss. 0 while this
	// process does not lead.
	Held int
	// Waiting is the number of members whose change of state waits until owners do
	// not change in steps any more. 0 while this process does not lead.
	Waiting int
}

// NewController checks the configuration; it does no I/O.
func NewController(c ControllerConfig) (*Controller, error) {
	if c.Store == nil || c.Elector == nil || c.ID == "" {
		return nil, fmt.Errorf("%w: a controller needs a store, an elector and an id", ErrInvalid)
	}
	if err := topology.ValidateClusterName(c.Cluster); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Controller{c: c, log: c.Logger.Named("controller").With("cluster", c.Cluster), status: Status{Since: c.Now()}}, nil
}

// Status returns what the controller does just now.
func (c *Controller) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *Controller) update(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}

// Run campaigns, and publishes while it leads, until ctx ends (it returns
// ctx.Err()) or the cluster is not there or gone (ErrNoCluster). A lost
// leadership or an unreachable store is overcome by trying again. It resigns
// before it returns.
func (c *Controller) Run(ctx context.Context) error {
	for failures := 0; ; {
		l, err := c.c.Elector.Campaign(ctx, c.c.Cluster, c.c.ID)
		if err == nil {
			failures = 0
			err = c.lead(ctx, l)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrNoCluster):
			return fmt.Errorf("membership: controller: %w", err)
		}
		c.log.Warn("not leading, campaigning again", "error", err)
		pause(ctx, failures)
		failures++
	}
}

// lead publishes until the leadership or ctx ends.
func (c *Controller) lead(ctx context.Context, l Leadership) error {
	c.log.Info("leading", "id", c.c.ID)
	c.setLeading(true)
	defer c.setLeading(false)
	defer resign(ctx, l, c.log)
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		select {
		case <-l.Done():
			cancel(ErrNotLeader)
		case <-ctx.Done():
		}
	})
	err := c.serve(ctx, l)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// serve answers the state as it is, then every state that the watch brings. The
// first reading comes before the watch, which skips what cannot be used: so a
// head that is garbage shows in Status.
func (c *Controller) serve(ctx context.Context, l Leadership) error {
	first, err := c.c.Store.Load(ctx)
	if err = c.answerUntil(ctx, l, first, err); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	box := make(chan State, 1)
	watch := make(chan error, 1)
	wg.Go(func() {
		watch <- c.c.Store.Watch(ctx, func(s State) error { replace(box, s); return nil })
	})
	admission := make(chan error, 1)
	if c.c.Roster != nil {
		wg.Go(func() { admission <- c.admit(ctx, l) })
	}
	for {
		var s State
		var again <-chan time.Time
		if c.retry > 0 {
			again = time.After(c.retry)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again:
			s, err := c.c.Store.Load(ctx)
			if err := c.answerUntil(ctx, l, s, err); err != nil {
				return err
			}
			continue
		case err := <-watch:
			return err
		case err := <-admission:
			return err
		case s = <-box:
		}
		if err := c.answerUntil(ctx, l, c.settle(ctx, s, box), nil); err != nil {
			return err
		}
	}
}

// resign hands over, in bounded time, though ctx may have ended.
func resign(ctx context.Context, l Leadership, log hclog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := l.Resign(ctx); err != nil {
		log.Debug("resigning failed, the lease will end it", "error", err)
	}
}

// replace puts s into the box in place of what lies there: latest wins. Only
// one goroutine writes.
func replace(box chan State, s State) {
	select {
	case <-box:
	default:
	}
	box <- s
}

// answerUntil answers a state, if there was no error in reading it. A failure
// that may pass is shown in Status, and tried again with a fresh reading.
func (c *Controller) answerUntil(ctx context.Context, l Leadership, s State, err error) error {
	for failures := 0; ; failures++ {
		if err == nil {
			err = c.step(ctx, l, s)
		}
		if err == nil || errors.Is(err, ErrNotLeader) || errors.Is(err, ErrNoCluster) {
			return err
		}
		c.log.Debug("step failed, loading again", "error", err)
		if failures > 0 { // one conflict is nothing to tell
			c.update(func(st *Status) { st.Err = err })
		}
		if !pause(ctx, failures) {
			return err
		}
		s, err = c.c.Store.Load(ctx)
	}
}

// settle waits for the edits that follow closely, and returns the last state.
func (c *Controller) settle(ctx context.Context, s State, box <-chan State) State {
	if c.c.Settle <= 0 || s.Head == nil || s.Applied == s.Generation {
		return s
	}
	t := time.NewTimer(c.c.Settle)
	defer t.Stop()
	for {
		select {
		case s = <-box:
		case <-t.C:
			return s
		case <-ctx.Done():
			return s
		}
	}
}

func (c *Controller) setLeading(leading bool) {
	c.update(func(s *Status) {
		s.Leading, s.Since = leading, c.c.Now()
		if !leading {
			s.Err, s.Held, s.Waiting = nil, 0, 0
		}
	})
}

// pause waits 10 ms, twice as long with every failure, up to a second, half of
// it by chance; it reports false when ctx ended.
func pause(ctx context.Context, failures int) bool {
	d := min(time.Second, 10*time.Millisecond<<min(failures, 10))
	t := time.NewTimer(d/2 + rand.N(d/2))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
