package sdk

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/topology"
)

// Option configures a Client.
type Option func(*options)

type options struct {
	logger  hclog.Logger
	pinned  topology.ClusterID
	hooks   Hooks
	plugged []Hook // see WithHook

	healthExpiry time.Duration

	snapshot string
	reset    bool

	bound      BoundedLoad
	balance    *Balance
	resilience *Resilience
	zone       string
	grace      Grace
	clock      func() time.Duration
	chance     func() uint64
}

// WithLogger sets the logger. The default, and nil, is to log nothing.
func WithLogger(l hclog.Logger) Option { return func(o *options) { o.logger = l } }

// WithClusterID pins the cluster: topologies of another id are refused with
// ErrCluster from the first one on. By default, and with the zero id, the
// client pins the id of the first topology it gets, for as long as it lives.
// Give the id where an address may come to belong to another cluster while the
// process is down.
func WithClusterID(id topology.ClusterID) Option { return func(o *options) { o.pinned = id } }

// WithHooks sets functions that are told what happens; see Hooks. The last
// call wins; WithHook adds to them.
func WithHooks(h Hooks) Option { return func(o *options) { o.hooks = h } }

// Hooks are told what a client does, for metrics and tests. A nil function is
// not called; the panic of one is logged. Hooks run in the goroutine of the source, one
// after another, and hold up the next topology: they are expected to be fast. Lookups never wait for them. For work that may take long use
// Client.OnChange.
type Hooks struct {
	// OnTaken is called after lookups go by the topology to. from is what
	// was held before, zero at first; build is the time the table took.
	OnTaken func(from, to topology.Ref, build time.Duration)
	// OnRefused is called for every topology that is refused.
	OnRefused func(*RefusedError)
	// OnProblem is called for every problem that the source reports, and
	// with the error of a Watch that returned early or a snapshot file that
	// cannot be used.
	OnProblem func(error)
	// OnDrained is called when a node that gives up its keys, or has left, has
	// nothing of Acquire in flight any more, or its grace period is over
	// (WithGrace): its connections can be closed. It is not called for a node that is
	// back at the same address by then. Unlike the others it runs in a goroutine of its
	// own with Resilience.OnEject, one call at a time, up to 100 ms after the event, and
	// holds up nothing else.
	OnDrained func(Departed)
}
