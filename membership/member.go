package membership

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/topology"
)

// DefaultTTL is the time of a node's lease unless told otherwise: so long after
// its last sign a node counts as gone.
const DefaultTTL = 5 * time.Second

// Registration says who a node is and what it asks for.
type Registration struct {
	ID   string // required; see topology.Node.ID
	Addr string // where the node serves, such as 10.0.0.1:11211
	// Zone is the failure domain that it asks for; "" keeps the declared one.
	Zone string
	// Weight is what it asks for; nil keeps the declared one (for a node that
	// is not declared yet 1, under go-zero 100), 0 = owns nothing.
	Weight *uint32
	// Identity names the node beyond its address, for a node that may come
	// back at another one: a text that survives its restarts and that no
	// other node has. "" = only its address does.
	Identity string
	// Cluster pins the cluster's id: the store of another cluster is refused
	// (ErrForeign). Zero pins what is met first.
	Cluster topology.ClusterID
	// Incarnation is the last one that an earlier process of this node had,
	// if it is known; 0 = not known.
	Incarnation uint64
	// TTL is how long after its last sign the node counts as gone; default
	// DefaultTTL, at least a second. The lease itself may be shorter, where
	// the store ends leases late: a second with etcd, which is renewed three
	// times in that time.
	TTL time.Duration
	// Logger; nil = none.
	Logger hclog.Logger
}

// Member is a node's registration, kept up until Close. Make one with Register.
// Safe for concurrent use.
type Member struct {
	r     Registrar
	ttl   time.Duration
	owner string
	log   hclog.Logger

	stop   context.CancelFunc
	ended  chan struct{}
	wake   chan struct{} // one place: something is to be written
	closed error         // of leaving; read after ended

	mu      sync.Mutex
	live    Live          // what is to be written
	changes uint64        // of live
	written uint64        // which of them the store has
	told    chan struct{} // closed and replaced when written or status changes
	status  MemberStatus
}

// MemberStatus says how a registration stands.
type MemberStatus struct {
	Registered  bool               // the record is there, as far as this process knows
	Since       time.Time          // when Registered changed last
	Cluster     topology.ClusterID // of the cluster; what to pin
	Owner       string             // of this process
	Incarnation uint64             // of the lease held now or last
	Losses      uint64             // how often the registration was lost
	Err         error              // why it is not registered; nil while it is
}

// Register registers a node and keeps it registered until Close, whatever
// happens to the store, the lease or the record: a lost registration is made
// anew, with pauses by chance that grow to a second. It returns when the first
// registration stands; ctx bounds only that.
//
// A record that a process of the same node left behind (the same Addr, or the
// same Identity) is taken over: a restart within the lease's time keeps its
// place. That is for the start only. A process whose record was taken over by
// another one, or that finds another one when it comes back, waits until the
// record is free and shows ErrDuplicate in Status.
//
// Errors: ErrInvalid, ErrDuplicate, ErrForeign, ErrNoCluster, and ErrCorrupt for
// a cluster of a later release; ctx.Err() joined with the last failure while the
// store cannot be reached.
func Register(ctx context.Context, r Registrar, reg Registration) (*Member, error) {
	var owner [16]byte
	_, _ = rand.Read(owner[:]) // crypto/rand.Read never fails: it ends the program instead
	m := &Member{r: r, ttl: max(cmp.Or(reg.TTL, DefaultTTL), time.Second), owner: hex.EncodeToString(owner[:]),
		ended: make(chan struct{}), wake: make(chan struct{}, 1), told: make(chan struct{})}
	m.live = Live{ID: reg.ID, Cluster: reg.Cluster, Addr: reg.Addr, Zone: reg.Zone, Weight: reg.Weight, Owner: m.owner,
		Identity: reg.Identity, Incarnation: reg.Incarnation}
	if err := m.live.Validate(); err != nil {
		return nil, err
	}
	if m.log = reg.Logger; m.log == nil {
		m.log = hclog.NewNullLogger()
	}
	m.log = m.log.Named("member").With("node", reg.ID)
	m.status.Owner = m.owner
	p, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	go m.run(running, p)
	return m, nil
}

// start makes the first registration.
func (m *Member) start(ctx context.Context) (Presence, error) {
	for failures := 0; ; failures++ {
		p, err := m.attach(ctx, true)
		if err == nil {
			m.log.Info("registered", "owner", m.owner, "incarnation", m.Status().Incarnation, "ttl", m.ttl)
			return p, nil
		}
		for _, final := range []error{ErrInvalid, ErrDuplicate, ErrForeign, ErrNoCluster, ErrCorrupt} {
			if errors.Is(err, final) {
				return nil, err
			}
		}
		if failures == 0 {
			m.log.Warn("not registered yet, trying on", "error", err)
		}
		if !pause(ctx, failures) {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// attach writes the record as it should be, if it may.
func (m *Member) attach(ctx context.Context, first bool) (Presence, error) {
	m.mu.Lock()
	id := m.live.ID
	m.mu.Unlock()
	var live Live
	var change uint64
	p, err := m.r.Attach(ctx, id, m.ttl, func(cluster topology.ClusterID, held *Live) (next Live, err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		live, change = m.live, m.changes
		if err := live.mayTake(cluster, held, first); err != nil {
			return Live{}, err
		}
		if held != nil {
			live.Incarnation = max(live.Incarnation, held.Incarnation)
		}
		live.Cluster = cluster
		live.Incarnation++
		return live, nil
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.tellLocked()
	if err != nil {
		m.status.Err = err
		return nil, err
	}
	m.live.Cluster, m.live.Incarnation, m.written = live.Cluster, live.Incarnation, change
	m.status.Registered, m.status.Since, m.status.Err = true, time.Now(), nil
	m.status.Cluster, m.status.Incarnation = live.Cluster, live.Incarnation
	return p, nil
}

// mayTake says why l must not take the place of held, or returns nil.
func (l Live) mayTake(cluster topology.ClusterID, held *Live, first bool) error {
	switch {
	case !l.Cluster.IsZero() && l.Cluster != cluster:
		return fmt.Errorf("%w: node %q belongs to cluster id %s, the store holds %s; correct the store's address, or drop the pinned id if the cluster was made anew on purpose",
			ErrForeign, l.ID, l.Cluster, cluster)
	case held == nil || held.Owner == l.Owner:
		return nil
	case first && (held.Addr != "" && held.Addr == l.Addr || held.Identity != "" && held.Identity == l.Identity):
		return nil
	}
	return fmt.Errorf("%w: %q is held by a process at %q (owner %s, incarnation %d), this one is at %q; give this node another id, or stop that process and wait until its lease has ended",
		ErrDuplicate, l.ID, held.Addr, held.Owner, held.Incarnation, l.Addr)
}

// run keeps the registration up until Close. What is lost is given up only after
// it is made anew: it may still be there, and then the new lease takes it over.
func (m *Member) run(ctx context.Context, p Presence) {
	defer close(m.ended)
	for p != nil {
		var next Presence
		if m.hold(ctx, p) {
			next = m.again(ctx)
		}
		if err := m.leave(ctx, p); next == nil {
			m.closed = err
		}
		p = next
	}
}

// hold writes what changes until the record is lost (true) or ctx ends (false).
func (m *Member) hold(ctx context.Context, p Presence) (lost bool) {
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return false
		case <-p.Done():
			return true
		case <-m.wake:
		}
		err := m.push(ctx, p)
		if err == nil || errors.Is(err, ErrConflict) { // the latter closes Done
			failures = 0
			continue
		}
		m.log.Debug("change is not written yet", "error", err)
		pause(ctx, failures)
		failures++
		m.rouse()
	}
}

// push writes the record if it changed.
func (m *Member) push(ctx context.Context, p Presence) error {
	m.mu.Lock()
	live, change, written := m.live, m.changes, m.written
	m.mu.Unlock()
	if change == written {
		return nil
	}
	if err := p.Update(ctx, live); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written = max(m.written, change)
	m.tellLocked()
	return nil
}

// again registers anew, however long it takes; nil when ctx ends first.
func (m *Member) again(ctx context.Context) Presence {
	m.mu.Lock()
	m.status.Registered, m.status.Since = false, time.Now()
	m.status.Losses++
	lostAt := m.status.Since
	m.tellLocked()
	m.mu.Unlock()
	m.log.Warn("registration lost, registering again")
	last := ""
	for failures := 0; ; failures++ {
		p, err := m.attach(ctx, false)
		if err == nil {
			m.log.Info("registered again", "away", time.Since(lostAt), "incarnation", m.Status().Incarnation)
			m.rouse()
			return p
		}
		if ctx.Err() != nil {
			return nil
		}
		if text := err.Error(); text != last { // each kind of trouble once
			last = text
			m.log.Warn("not registered, trying on", "error", err)
		}
		pause(ctx, failures)
	}
}

// leave gives the record up in bounded time, though ctx may have ended.
func (m *Member) leave(ctx context.Context, p Presence) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return p.End(ctx)
}

func (m *Member) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Member) tellLocked() {
	close(m.told)
	m.told = make(chan struct{})
}

// Status returns how the registration stands.
func (m *Member) Status() MemberStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// SetHealth says how the node is; reason says why it is bad. It is written in
// the background, the newest wins, and moves no key.
func (m *Member) SetHealth(h Health, reason string) error {
	return m.change(func(l *Live) { l.Health, l.Reason = h, reason })
}

// Drain publishes the wish to give the node's keys up, and returns when it is
// written, or ctx.Err(). The node stays registered: Close when the topology
// shows that it owns nothing any more.
func (m *Member) Drain(ctx context.Context) error {
	if err := m.change(func(l *Live) { l.Drain = true }); err != nil {
		return err
	}
	m.mu.Lock()
	want := m.changes
	m.mu.Unlock()
	for {
		m.mu.Lock()
		done, told := m.written >= want && m.status.Registered, m.told
		m.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-told:
		case <-m.ended:
			return fmt.Errorf("%w: the registration is closed", ErrConflict)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change changes what is to be written. A change that makes the record invalid
// is refused.
func (m *Member) change(fn func(*Live)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.live
	fn(&next)
	if err := next.Validate(); err != nil {
		return err
	}
	if next != m.live {
		m.live = next
		m.changes++
		m.rouse()
	}
	return nil
}

// Close leaves: the record is deleted at once, or ends with its lease if the
// store does not answer within two seconds (the error says so). It waits for the
// end of the loop. Further calls return the same.
func (m *Member) Close() error {
	m.stop()
	<-m.ended
	return m.closed
}
