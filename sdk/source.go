package sdk

import (
	"context"

	"github.com/shardd/shardd/topology"
)

// Source brings topologies to a Client. Sources are safe for concurrent use:
// several clients may watch through one.
//
// # Law of sources
//
// A topology is delivered only if it continues what the caller holds, as far as
// the caller cannot see that for itself. The caller holds have, and later the
// last topology for which fn returned nil. Within one epoch the source presents
// that to the other side (a shardd server: ?after=E.S&digest=D; a store: its
// chain of digests) and delivers what comes after only if the other side
// has this digest at this version in the chain of what it sends; a topology of
// a higher epoch needs no proof, nor does one for a caller that holds nothing.
// What cannot be proved is not delivered but reported (see Report) as an error
// that wraps ErrForked or ErrOlder, and the source goes on watching, elsewhere
// if it can: the other side may be lagging.
//
// The client checks everything else itself: cluster id, epoch, history, order,
// the parent of the next version, and both digests.
type Source interface {
	// Watch calls fn with topologies as they come, complete with their
	// tables, from one goroutine at a time, until ctx ends. have is what the
	// caller holds; its zero value is nothing. What is held need not be sent
	// again. A source may skip versions; it always delivers the last.
	//
	// A source that learns which nodes are bad by their own checks tells it
	// by ReportHealth.
	//
	// fn(nil) says that the other side has just confirmed that what the
	// caller holds is the newest; so does delivering it once more. A source
	// that can do so does it every few seconds: the client's Age counts from
	// there.
	//
	// If fn returns an error the topology was refused and what was held is
	// held still: the source keeps watching, and tries another server if it
	// has one.
	//
	// Watch handles lost connections by itself, with a jittered pause of at
	// most a second, and returns when ctx has ended or going on is
	// pointless. A client calls a Watch that returned early again, with what
	// it holds by then.
	Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error
}

type reportKey struct{}

// WithReport returns a context with which Watch is told where to report
// problems that it handles by itself. Clients do so; wrappers of sources may.
func WithReport(ctx context.Context, fn func(error)) context.Context {
	return context.WithValue(ctx, reportKey{}, fn)
}

// Report tells the caller of Watch about a problem that the source handles by
// itself: a lost connection, an answer that cannot be decoded, a server that
// does not know the version presented to it. ctx is Watch's. It may be called
// from any goroutine; without a listener it does nothing.
func Report(ctx context.Context, err error) {
	if fn, ok := ctx.Value(reportKey{}).(func(error)); ok && err != nil {
		fn(err)
	}
}
