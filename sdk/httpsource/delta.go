package httpsource

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/topology"
)

// deltas says which deltas can be applied: those from the held version only if
// it came through this Watch, for of one that the client had before, from its
// snapshot or another source, only the name is known here.
func (f *follower) deltas() api.Deltas {
	if f.held.IsZero() || f.base != nil && f.base.Digest() == f.held.Digest {
		return api.DeltasAll
	}
	return api.DeltasNext
}

// version returns the version that m brings, with its tables.
func (f *follower) version(ctx context.Context, srv *server, m api.Message) (*topology.Topology, error) {
	if m.Type == api.MessageFull {
		t, err := m.Decode()
		if err != nil {
			return nil, err
		}
		return f.attach(ctx, srv, t)
	}
	t, tables, err := f.apply(m)
	if err != nil {
		f.source.opts.logger.Debug("delta cannot be used; fetching the whole version", "server", srv.name, "version", m.Version, "error", err)
		return f.fetch(ctx, srv, m)
	}
	return f.attach(ctx, srv, t, tables...)
}

func (f *follower) apply(m api.Message) (*topology.Topology, []*topology.Object, error) {
	d, err := m.DecodeDelta()
	if err != nil {
		return nil, nil, err
	}
	t, tables, err := d.Apply(f.base)
	if err == nil && (t.Version() != m.Version || t.ClusterID() != m.ClusterID) {
		err = fmt.Errorf("%w: message says version %s of %s, its delta leads to %s of %s", topology.ErrCorrupt, m.Version, m.ClusterID, t.Version(), t.ClusterID())
	}
	return t, tables, err
}

// fetch gets the version that m names as a whole. The stream has proved that a
// version of this digest continues what is held; another one is not taken.
func (f *follower) fetch(ctx context.Context, srv *server, m api.Message) (*topology.Topology, error) {
	t, err := srv.client.TopologyAt(ctx, f.source.cluster, m.Version)
	if err != nil {
		f.base = nil // the next stream begins with a whole version
		return nil, err
	}
	if t.Digest() != m.Digest {
		f.base = nil
		return nil, fmt.Errorf("%w: version %s has digest %s, the watch says %s", errOtherLine, m.Version, t.Digest(), m.Digest)
	}
	return f.attach(ctx, srv, t, t.Objects()...)
}

// errOtherLine: two answers of one server do not belong to one line of versions.
var errOtherLine = errors.New("httpsource: server changed its versions meanwhile")
