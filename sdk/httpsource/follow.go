package httpsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// errRefused ends a stream whose server serves what the client refuses.
var errRefused = errors.New("httpsource: the server's topologies are refused")

// follower is one Watch: what its client holds, and the tables in use.
type follower struct {
	source    *Source
	held      topology.Ref
	fn        func(*topology.Topology) error
	base      *topology.Topology                   // newest version that came, taken or not: what deltas apply to
	tables    map[topology.Digest]*topology.Object // of it
	delivered bool                                 // this stream has brought or confirmed something
	opened    time.Time                            // when it was accepted
	health    *api.Message                         // what this stream said of the nodes' health last; nil = nothing
}

// follow opens a watch and follows it until its stream ends. The error says why.
func (f *follower) follow(ctx context.Context, turn *turns) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.open(ctx, turn)
	if err != nil {
		return inSDKTerms(err)
	}
	srv := f.source.servers[turn.server()]
	f.opened, f.health = time.Now(), nil
	err = stream.Follow(ctx, f.source.opts.silence, func(m api.Message) error {
		return f.message(ctx, srv, m)
	})
	return inSDKTerms(err)
}

// inSDKTerms gives an error of the server the sentinel that clients know.
func inSDKTerms(err error) error {
	for _, pair := range [...][2]error{{api.ErrCluster, sdk.ErrCluster}, {api.ErrForked, sdk.ErrForked}, {api.ErrOlder, sdk.ErrOlder}} {
		if errors.Is(err, pair[0]) {
			return fmt.Errorf("httpsource: %w: %w", pair[1], err)
		}
	}
	return err
}

// message deals with one line of the stream. An error ends the stream; what
// only this version suffers from is reported, and the stream goes on.
func (f *follower) message(ctx context.Context, srv *server, m api.Message) error {
	switch m.Type {
	case api.MessageHeartbeat:
		f.tellHealth(ctx)
		return f.heartbeat(m)
	case api.MessageHealth:
		f.health = &m
		f.tellHealth(ctx)
		return nil
	case api.MessageHealthUnknown:
		f.health = nil
		return nil
	case api.MessageFull, api.MessageDelta:
	default: // of a later release
		return nil
	}
	t, err := f.version(ctx, srv, m)
	if errors.Is(err, topology.ErrUnknown) {
		sdk.Report(ctx, fmt.Errorf("httpsource: version %s from %s: %w; staying on %s until this program is upgraded or the next version can be used", m.Version, srv.name, err, f.held.Version))
		return nil
	}
	if err != nil {
		return fmt.Errorf("httpsource: %s: %w", srv.name, err)
	}
	return f.deliver(t)
}

// tellHealth tells the client what the stream has said of the nodes' health, and
// with every heartbeat that it still says so. What another cluster's server says
// is not for this client.
func (f *follower) tellHealth(ctx context.Context) {
	if f.health != nil && f.health.ClusterID == f.held.ClusterID {
		sdk.ReportHealth(ctx, f.health.Bad)
	}
}

func (f *follower) heartbeat(m api.Message) error {
	if m.Digest != f.held.Digest || m.ClusterID != f.held.ClusterID || f.held.IsZero() {
		return nil
	}
	f.delivered = true
	return f.fn(nil)
}

// deliver hands t to the client. If it is of the wrong cluster or line, so is
// everything that this server has; if the client cannot use it for another
// reason, the next version may be better.
func (f *follower) deliver(t *topology.Topology) error {
	err := f.fn(t)
	switch {
	case err == nil:
		f.held = t.Ref()
		f.delivered = true
	case errors.Is(err, sdk.ErrCluster), errors.Is(err, sdk.ErrForked), errors.Is(err, sdk.ErrOlder), errors.Is(err, sdk.ErrClosed):
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return nil
}

// attach adds the tables that t refers to. Those of the version before are at
// hand, and more may be; the others are fetched where the version came from.
func (f *follower) attach(ctx context.Context, srv *server, t *topology.Topology, more ...*topology.Object) (*topology.Topology, error) {
	tables := make(map[topology.Digest]*topology.Object, len(t.Refs()))
	objects := make([]*topology.Object, 0, len(t.Refs()))
	for _, ref := range t.Refs() {
		o := f.tables[ref.Digest]
		if i := slices.IndexFunc(more, func(o *topology.Object) bool { return o.Digest() == ref.Digest }); i >= 0 {
			o = more[i]
		}
		if o == nil {
			var err error
			if o, err = srv.client.Object(ctx, f.source.cluster, ref.Digest); err != nil {
				return nil, fmt.Errorf("table of version %s: %w", t.Version(), err)
			}
		}
		tables[ref.Digest] = o
		objects = append(objects, o)
	}
	full, err := t.Attach(objects...)
	if err != nil {
		return nil, err
	}
	f.base, f.tables = full, tables
	return full, nil
}
