package sdk

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/shardd/shardd/topology"
)

// Ownership is not health: the overlay says which nodes requests go round, and
// moves no key. A key whose owner is in it goes to the next node in the key's
// order of preference, as with a node that is published as down; with every node
// in it the mapping, and its digest, are what they were.

// DefaultHealthExpiry is how long what a source says of the nodes' health stands
// without being said again.
const DefaultHealthExpiry = 30 * time.Second

// overlayLimit is the most of the weight that owns keys that may be bad, nodes
// that are published as down included, with the overlay heeded. Of more it is the
// check that is wrong, or what all nodes depend on, and the rest would not bear the
// load (Envoy's panic threshold has the same default).
const overlayLimit = 0.5

// WithHealthExpiry sets how long what a source says of the nodes' health stands
// without being said again; 0 = DefaultHealthExpiry, negative = health from the
// source is not heeded at all. Sources say it again every few seconds while they
// have a connection.
func WithHealthExpiry(d time.Duration) Option { return func(o *options) { o.healthExpiry = d } }

// Overlay is what a client knows of the nodes' health.
type Overlay struct {
	Reported []string  // bad by word of the source, ascending; nil = it says nothing
	At       time.Time // when it said so last; zero = never
	Own      []string  // bad by word of this process (SetHealth), ascending
	// Around lists the nodes that requests go round: those above that own
	// keys; none if Ignored.
	Around []string
	// Ignored: with the nodes that are published as down, those above have
	// more than half of the weight, so requests go where they would go
	// without an overlay.
	Ignored bool
}

// overlay is a client's state of it, guarded by Client.mu.
type overlay struct {
	expiry   time.Duration
	reported []string
	at       time.Time
	timer    *time.Timer // ends what was reported; nil = nothing was
	own      map[string]bool
	around   []string
	ignored  bool
}

type healthKey struct{}

// ReportHealth tells the caller of Watch which nodes are bad by their own checks;
// an empty list says that none is. ctx is Watch's. A source says it again while
// it still has it confirmed, every few seconds, and says nothing if it does not
// know. It may be called from any goroutine; without a listener it does nothing.
// bad is not kept.
func ReportHealth(ctx context.Context, bad []string) {
	if fn, ok := ctx.Value(healthKey{}).(func([]string)); ok {
		fn(bad)
	}
}

// WithHealthReport returns a context with which Watch is told where to report
// health. Clients do so; wrappers of sources may.
func WithHealthReport(ctx context.Context, fn func(bad []string)) context.Context {
	return context.WithValue(ctx, healthKey{}, fn)
}

// SetHealth says how this process finds a node: requests go round one that is not
// ok until SetHealth says otherwise, whatever versions come. It is about the id;
// a node that is not there may be named. The cost is that of a new snapshot
// without a new table: some microseconds for a hundred nodes.
func (c *Client) SetHealth(node string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.overlay.own[node] == !ok {
		return
	}
	if c.overlay.own == nil {
		c.overlay.own = map[string]bool{}
	}
	if c.overlay.own[node] = true; ok {
		delete(c.overlay.own, node)
	}
	c.overlayChanged()
}

// Overlay returns what the client knows of the nodes' health.
func (c *Client) Overlay() Overlay {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &c.overlay
	return Overlay{Reported: slices.Clone(o.reported), At: o.at, Own: slices.Sorted(maps.Keys(o.own)), Around: slices.Clone(o.around), Ignored: o.ignored}
}

// health is what the source calls.
func (c *Client) health(bad []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &c.overlay
	if o.expiry < 0 || c.isClosed() { // also what comes late
		return
	}
	o.at = time.Now()
	switch {
	case len(bad) == 0:
		o.stop()
	case o.timer == nil:
		o.timer = time.AfterFunc(o.expiry, c.healthExpired)
	default:
		o.timer.Reset(o.expiry)
	}
	bad = slices.Compact(slices.Sorted(slices.Values(bad)))
	if o.reported == nil || !slices.Equal(bad, o.reported) {
		o.reported = append([]string{}, bad...) // not nil: the source says that none is bad
		c.overlayChanged()
	}
}

func (o *overlay) stop() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}

// healthExpired drops what the source has not said again for long.
func (c *Client) healthExpired() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := &c.overlay; !c.isClosed() && o.timer != nil && time.Since(o.at) >= o.expiry {
		c.logger.Warn("health of the nodes is not reported any more; requests go to all again", "bad", o.reported)
		o.timer, o.reported = nil, nil
		c.overlayChanged()
	}
}

// overlayChanged makes lookups go by the overlay as it is now; c.mu is held.
func (c *Client) overlayChanged() {
	held := c.snap.Load()
	if held.table == nil || c.isClosed() {
		return
	}
	before, ignored := c.overlay.around, c.overlay.ignored
	s := newSnapshot(held.table)
	c.lay(s)
	if slices.Equal(before, c.overlay.around) && ignored == c.overlay.ignored {
		return
	}
	c.plan(s)
	c.snap.Store(s)
	if c.overlay.ignored {
		c.logger.Warn("health is not heeded: bad nodes have more than half of the weight", "reported", c.overlay.reported, "own", len(c.overlay.own))
		return
	}
	c.logger.Info("requests go round bad nodes", "nodes", c.overlay.around)
}

// lay lays the overlay over a snapshot that nobody sees yet; c.mu is held.
func (c *Client) lay(s *snapshot) {
	o := &c.overlay
	o.around, o.ignored = nil, false
	if len(o.reported) == 0 && len(o.own) == 0 {
		return
	}
	var bad []int
	var all, down float64
	weights := s.table.OwnerWeights()
	for i, n := range s.topology().Nodes() {
		w := weights[i]
		_, told := slices.BinarySearch(o.reported, n.ID)
		told = w > 0 && (told || o.own[n.ID])
		if all += w; told || n.State == topology.StateDown {
			down += w
		}
		if told {
			bad, o.around = append(bad, i), append(o.around, n.ID)
		}
	}
	if down > overlayLimit*all {
		o.around, o.ignored = nil, true
		return
	}
	s.goRound(bad)
}

// goRound marks nodes as down for lookups.
func (s *snapshot) goRound(nodes []int) {
	if len(nodes) == 0 {
		return
	}
	if s.detours == nil {
		s.detours = s.makeRecords(true)
	}
	for _, i := range nodes {
		s.records[i].down, s.detours[i].down = true, true
	}
	s.special = true
}
