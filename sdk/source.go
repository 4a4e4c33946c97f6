package sdk

import (
	"context"

	"github.com/shardd/shardd/topology"
)

// Source brings topologies to a Client.
type Source interface {
	// Watch calls fn with topologies as they come, complete with their
	// tables, from one goroutine at a time, until ctx ends. have is what the
	// caller holds (zero = nothing): the source presents it, so that the
	// other side can prove descent, and need not send it again. A source may
	// skip versions; it always delivers the last. If fn returns an error the
	// topology was refused: the source keeps watching and may report it.
	// Watch handles reconnecting by itself and returns only when ctx has
	// ended (ctx.Err()) or going on is pointless (a configuration error).
	Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error
}
