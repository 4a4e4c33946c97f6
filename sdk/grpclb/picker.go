package grpclb

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/loadreport/grpcreport"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/topology"
)

// picker is immutable.
type picker struct {
	lb    *LB
	nodes map[string]nodeState
	down  []string // ids of those that are not connected
}

// Pick says where one call goes.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if id, ok := info.Ctx.Value(pinned{}).(string); ok { // a probe
		conn, err := p.ready(id)
		if err != nil {
			return balancer.PickResult{}, err
		}
		return balancer.PickResult{SubConn: conn.sc}, nil
	}
	cfg := &p.lb.cfg
	c := &call{lb: p.lb}
	key := cfg.Key(info.Ctx, info.FullMethodName)
	err := p.admit(info.Ctx, c, sdk.Call{Key: key, Any: key == "", Cost: max(1, cfg.Cost(info.Ctx, info.FullMethodName))})
	if err != nil {
		return balancer.PickResult{}, err
	}
	c.base = c.ticket.Route().Topology()
	c.conn.begin()
	r := balancer.PickResult{SubConn: c.conn.sc, Done: c.done}
	if cfg.Converge != nil {
		r.Metadata = metadata.Pairs(presentKey, converge.Present(c.base))
	}
	return r, nil
}

// admit takes a ticket of a node that is connected. Nodes that are not are passed over
// where another will do.
func (p *picker) admit(ctx context.Context, c *call, to sdk.Call) (err error) {
	var except []string
	if to.Any || p.lb.cfg.Next {
		except = p.down
	}
	if err = p.acquire(ctx, c, to, except); err != nil {
		return refused(err)
	}
	if c.conn, err = p.ready(c.ticket.ID()); err != nil {
		c.ticket.Done(sdk.Ignored)
	}
	return err
}

// acquire takes a ticket of another node than those excepted, or of any if there is no
// other: then the call waits, or fails, for that one.
func (p *picker) acquire(ctx context.Context, c *call, to sdk.Call, except []string) (err error) {
	if len(except) > 0 {
		if c.ticket, err = p.lb.sdk.AcquireExcept(ctx, to, except); !errors.Is(err, sdk.ErrUnavailable) {
			return err
		}
	}
	if to.Any {
		c.ticket, err = p.lb.sdk.AcquireAny(ctx, to.Cost)
	} else {
		c.ticket, err = p.lb.sdk.Acquire(ctx, to.Key, to.Cost)
	}
	return err
}

// ready returns the node's connection with the fewest calls, or the error that lets
// the call wait for another picker, or fail.
func (p *picker) ready(id string) (*connection, error) {
	n, ok := p.nodes[id]
	switch {
	case !ok: // of a topology that gRPC has not been told of yet, or no longer
		return nil, balancer.ErrNoSubConnAvailable
	case len(n.ready) > 0:
		return slices.MinFunc(n.ready, func(a, b *connection) int { return int(a.flight.Load() - b.flight.Load()) }), nil
	case n.err != nil:
		return nil, unavailable(id, n.err)
	}
	return nil, balancer.ErrNoSubConnAvailable
}

// refused is the status of an error of the SDK.
func refused(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, sdk.ErrCost):
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return status.Error(codes.Unavailable, err.Error())
}

// call is a call under way.
type call struct {
	lb     *LB
	conn   *connection
	ticket sdk.Ticket
	base   *topology.Topology // that routed it
}

// done ends the call.
func (c *call) done(info balancer.DoneInfo) {
	c.conn.flight.Add(-1)
	cfg := &c.lb.cfg
	if answer := info.Trailer.Get(answerKey); len(answer) > 0 && cfg.Converge != nil {
		cfg.Converge.Take(c.base, []byte(answer[len(answer)-1]))
	}
	report, ok := grpcreport.FromTrailer(info.Trailer)
	o := outcome(info)
	if cfg.Feed == nil {
		if ok && report.HasInFlight {
			c.ticket.Report(report.InFlight)
		}
		c.ticket.Done(o)
		return
	}
	cfg.Feed.Done(&c.ticket, o, report, ok)
	c.lb.probes()
}

// outcome says what the end of a call tells about the node.
func outcome(info balancer.DoneInfo) sdk.Outcome {
	if !info.BytesSent { // the connection was gone when the call came to it: gRPC picks anew
		return sdk.Ignored
	}
	if info.Err == nil {
		return sdk.Success
	}
	switch status.Code(info.Err) {
	case codes.Canceled:
		return sdk.Ignored
	case codes.DeadlineExceeded:
		return sdk.Timeout
	case codes.ResourceExhausted:
		return sdk.Overload
	case codes.Unavailable, codes.Internal, codes.Unknown, codes.DataLoss, codes.Unimplemented:
		return sdk.Failure
	}
	return sdk.Success // an answer, if not the one that was hoped for
}
