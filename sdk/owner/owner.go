package owner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Config configures an Owner.
type Config struct {
	ID string // of this node, as in the topology; required
	// TTL is the time of the lease: so long after its last sign a node's keys go to
	// others; 0 means 10 s, less than 1 s means 1 s. The node itself stops a tenth
	// earlier.
	TTL time.Duration
	// OnLost is called when keys are lost, and returns when the node has let go of
	// them: requests that it began have ended, what it wrote is written. Nobody
	// acquires them before that, so it has to be quick: it is not called again, and
	// nothing is acquired, until it returns. nil = nothing.
	OnLost func(Transfer)
	// OnAcquired is called before Owns says yes to what was acquired: the place to
	// read it in. While it runs nothing else is acquired or let go of. nil = nothing.
	OnAcquired func(Transfer)
	// Poll is the longest pause between two readings of the records while others
	// hold keys that are to be acquired; 0 means 100 ms. It begins at a twentieth.
	Poll time.Duration
	// Logger; nil = none.
	Logger hclog.Logger
}

// Transfer is what went over to this node, or away from it.
type Transfer struct {
	Version topology.Version
	Fence   uint64 // of what was acquired; 0 for what was lost
	// Has reports whether the key is among what went over. It may be kept.
	Has func(key string) bool
}

// Claim is a node's right to serve a key, at the moment at which it was given.
type Claim struct {
	// Fence grows from one owner of a key to the next, and may grow while one owner
	// has it. Give it to the store with every write.
	Fence   uint64
	Version topology.Version // that the node goes by
}

// Owner answers what a node owns. Make one with New, end it with Close. Safe for
// concurrent use.
type Owner struct {
	client *sdk.Client
	leases Leases
	cfg    Config
	log    hclog.Logger
	start  time.Time

	view     atomic.Pointer[view] // nil = nothing; written by the loop alone
	deadline atomic.Int64         // until when the lease is valid, since start

	cancel context.CancelFunc
	ended  chan struct{}
	news   chan struct{} // one place: the topology has changed
	unsub  func()

	past past
	went time.Duration // when the loop went over to the view's version, since start
}

// New returns the owner for node cfg.ID and begins to acquire what it owns by the
// topology that client follows. It waits for nothing. The error says what is missing.
func New(client *sdk.Client, leases Leases, cfg Config) (*Owner, error) {
	if client == nil || leases == nil || cfg.ID == "" {
		return nil, errors.New("owner: client, leases and the node's ID are required")
	}
	cfg.TTL = max(cmp.Or(cfg.TTL, 10*time.Second), time.Second)
	cfg.Poll = cmp.Or(cfg.Poll, 100*time.Millisecond)
	o := &Owner{client: client, leases: leases, cfg: cfg, log: cfg.Logger, start: time.Now(), ended: make(chan struct{}), news: make(chan struct{}, 1)}
	if o.log == nil {
		o.log = hclog.NewNullLogger()
	}
	o.log = o.log.Named("owner").With("node", cfg.ID)
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	o.unsub = client.OnChange(func(ch sdk.Change) {
		o.past.saw(ch.To)
		select {
		case o.news <- struct{}{}:
		default:
		}
	})
	go o.run(ctx)
	return o, nil
}

// Owns returns the claim to key. Errors: *NotOwnerError, ErrPending, ErrNoLease. A
// claim is good for the moment: ask for each request.
func (o *Owner) Owns(key string) (Claim, error) {
	for {
		v := o.view.Load()
		if v == nil || !o.valid() {
			return Claim{}, ErrNoLease
		}
		claim, err := v.claim(key)
		if o.valid() && o.view.Load() == v { // it was so all the while
			return claim, err
		}
	}
}

// Close lets go of everything (OnLost), gives the lease up, so that others need not wait
// for its end, and waits for that, at most some seconds.
func (o *Owner) Close() {
	o.unsub()
	o.cancel()
	<-o.ended
}

// run takes leases until ctx ends.
func (o *Owner) run(ctx context.Context) {
	defer close(o.ended)
	for failures := 0; ctx.Err() == nil; failures++ {
		sent := time.Since(o.start)
		taking, cancel := context.WithTimeout(ctx, o.cfg.TTL/2)
		lease, err := o.leases.Take(taking, o.cfg.ID, o.cfg.TTL)
		cancel()
		if err == nil {
			failures = -1
			o.extend(sent)
			err = o.session(ctx, lease)
			o.drop()
			o.giveUp(lease)
		}
		if ctx.Err() == nil {
			o.log.Warn("no lease", "error", err)
			wait(ctx, min(time.Second, o.cfg.TTL/10*time.Duration(failures+2)/2))
		}
	}
}

// extend makes the lease valid for its time less a tenth, from when it was asked for.
func (o *Owner) extend(sent time.Duration) { o.deadline.Store(int64(sent + o.cfg.TTL - o.cfg.TTL/10)) }

// left is how long the lease is valid still.
func (o *Owner) left() time.Duration { return time.Duration(o.deadline.Load()) - time.Since(o.start) }

func (o *Owner) valid() bool { return o.left() > 0 }

// giveUp ends the lease in bounded time.
func (o *Owner) giveUp(l Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := l.End(ctx); err != nil {
		o.log.Debug("the lease ends by itself", "error", err)
	}
}

// drop lets go of everything.
func (o *Owner) drop() {
	v := o.view.Load()
	if v == nil {
		return
	}
	o.view.Store(nil)
	if o.cfg.OnLost != nil {
		o.cfg.OnLost(Transfer{Version: v.ref().Version, Has: func(key string) bool {
			_, held := v.holds(key)
			return held
		}})
	}
}

// session follows the topology under one lease until that is lost or ctx ends.
func (o *Owner) session(ctx context.Context, l Lease) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer cancel(nil)
	renewing.Go(func() { cancel(o.renew(ctx, l)) })
	pause := time.Duration(0)
	for {
		behind, err := o.step(ctx, l)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, ErrLost) {
				return errors.Join(context.Cause(ctx), err)
			}
			o.log.Debug("store does not answer", "error", err)
		}
		switch {
		case err == nil && !behind:
			pause = 0
		case pause == 0:
			pause = max(o.cfg.Poll/20, time.Millisecond)
		default:
			pause = min(2*pause, o.cfg.Poll)
		}
		var again <-chan time.Time
		if pause > 0 {
			again = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.news:
		case <-again:
		}
	}
}

// renew keeps the lease until it is lost, or too old by this node's clock, and returns
// at that very moment: what is left of the lease's time in the store is for OnLost.
func (o *Owner) renew(ctx context.Context, l Lease) error {
	for wait(ctx, min(o.cfg.TTL/4, o.left())) {
		sent := time.Since(o.start)
		asking, cancel := context.WithTimeout(ctx, min(o.cfg.TTL/4, o.left()))
		err := l.Renew(asking)
		cancel()
		switch {
		case err == nil && o.valid():
			o.extend(sent)
		case err == nil || errors.Is(err, ErrLost) || !o.valid():
			return errors.Join(ErrLost, err)
		}
	}
	return ctx.Err()
}

// step goes over to the newest version, or on with acquiring what it brought. behind
// says that there is more to acquire.
func (o *Owner) step(ctx context.Context, l Lease) (behind bool, err error) {
	t := o.client.Topology()
	v := o.view.Load()
	if t == nil {
		return false, nil
	}
	if v == nil || v.ref() != t.Ref() && o.pace(v) <= 0 {
		if v, err = o.goOver(ctx, l, v, t); err != nil {
			return true, err
		}
	}
	if v.whole() {
		return false, nil
	}
	behind, err = o.acquire(ctx, l, v)
	return behind || v.ref() != t.Ref(), err
}

// pace returns how long the node waits still before it goes over to another version:
// not at all, unless it has gone over to many of which it could acquire nothing.
func (o *Owner) pace(v *view) time.Duration {
	if v.depth < paceDepth {
		return 0
	}
	pause := min(o.cfg.Poll<<min(v.depth-paceDepth, 20), o.cfg.TTL)
	return o.went + pause - time.Since(o.start)
}

// goOver stops serving what t takes away, and says so.
func (o *Owner) goOver(ctx context.Context, l Lease, v *view, t *topology.Topology) (*view, error) {
	var prev *placement.Table
	if v != nil {
		prev = v.table
	}
	table, err := placement.Next(prev, t)
	if err != nil {
		return v, err // the client has built the same: never
	}
	if v == nil || !settledOn(v, t) {
		next := v.next(o.cfg.ID, table)
		o.view.Store(next)
		o.past.went(table)
		o.went = time.Since(o.start)
		if v != nil && o.cfg.OnLost != nil {
			o.cfg.OnLost(Transfer{Version: t.Version(), Has: func(key string) bool {
				_, held := v.holds(key)
				_, holds := next.holds(key)
				return held && !holds
			}})
		}
		v = next
	}
	for { // the record must not stay behind what is served
		settling, cancel := context.WithTimeout(ctx, o.cfg.TTL/4)
		err := l.Settle(settling, t.Ref())
		cancel()
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrLost) {
			return v, err
		}
		if !wait(ctx, o.cfg.Poll) {
			return v, ctx.Err()
		}
	}
}

func settledOn(v *view, t *topology.Topology) bool { return v.ref() == t.Ref() }

// acquire reads the others' records, and takes what they have let go of.
func (o *Owner) acquire(ctx context.Context, l Lease, v *view) (behind bool, err error) {
	reading, cancel := context.WithTimeout(ctx, o.cfg.TTL/4)
	defer cancel()
	all, revision, err := l.Records(reading)
	if err != nil {
		return true, err
	}
	if !o.valid() {
		return true, ErrLost
	}
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	var contests []contest
	for _, r := range all {
		if r.ID == o.cfg.ID || r.Settled == v.ref() || r.Settled.IsZero() {
			continue // who has settled on nothing reads before it serves
		}
		if r.Settled.Version.Compare(v.ref().Version) >= 0 || r.Settled.ClusterID != v.ref().ClusterID {
			return true, nil // a later version is on its way here
		}
		contests = append(contests, o.contest(r))
	}
	o.past.keep(all, v)
	if v.acquired && slices.Equal(v.contests, contests) {
		return true, nil // nobody has let go of anything since
	}
	next := v.with(contests, fenceOf(v.ref().Version.Epoch, revision))
	if next == v {
		return true, nil
	}
	if o.cfg.OnAcquired != nil {
		o.cfg.OnAcquired(Transfer{Version: v.ref().Version, Fence: next.fence, Has: func(key string) bool {
			_, had := v.holds(key)
			_, has := next.holds(key)
			return has && !had
		}})
	}
	o.view.Store(next)
	return !next.whole(), nil
}

// contest returns what the node of record r may serve still; with a version that is not
// remembered that is everything.
func (o *Owner) contest(r Record) contest {
	t := o.past.table(r.Settled)
	if t == nil {
		return contest{}
	}
	return contest{t, t.Topology().Index(r.ID)}
}

// fenceOf puts the epoch, which grows when a store went back, above the revision.
func fenceOf(epoch, revision uint64) uint64 { return epoch<<44 | revision&(1<<44-1) }

// wait waits for d, or returns false when ctx ends.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
