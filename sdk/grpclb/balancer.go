package grpclb

import (
	"context"
	"errors"
	"maps"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/loadreport/grpcreport"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/topology"
)

// nodeBalancer holds one connection a node. gRPC calls its methods one at a time, and
// listeners too.
type nodeBalancer struct {
	cc    balancer.ClientConn
	lb    *LB
	nodes map[string]*nodeConn // by id
}

// nodeConn is a node's connection.
type nodeConn struct {
	addr string
	sc   balancer.SubConn
	s    nodeState
}

// nodeState is what pickers know of a connection.
type nodeState struct {
	sc    balancer.SubConn
	state connectivity.State
	err   error // why connecting failed last
}

// UpdateClientConnState takes the nodes of a new topology.
func (b *nodeBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	lb, ok := s.ResolverState.Attributes.Value(lbKey{}).(*LB)
	if !ok {
		return errors.New("grpclb: the addresses are not from this package's resolver; connect by LB.NewClient")
	}
	b.lb = lb
	there := make(map[string]bool)
	for _, e := range s.ResolverState.Endpoints {
		id, ok := e.Attributes.Value(nodeKey{}).(string)
		if !ok || len(e.Addresses) == 0 {
			continue
		}
		there[id] = true
		b.node(id, e.Addresses[0])
	}
	for id, n := range b.nodes {
		if !there[id] {
			delete(b.nodes, id)
			n.sc.Shutdown() // calls under way go on
		}
	}
	b.publish()
	return nil
}

// node makes the connection of a node, anew if its address has changed.
func (b *nodeBalancer) node(id string, addr resolver.Address) {
	old := b.nodes[id]
	if old != nil && old.addr == addr.Addr {
		return
	}
	n := &nodeConn{addr: addr.Addr}
	sc, err := b.cc.NewSubConn([]resolver.Address{addr}, balancer.NewSubConnOptions{ //nolint:staticcheck // SA1019: deprecated for several addresses; this is one
		StateListener: func(s balancer.SubConnState) { b.changed(id, n, s) }})
	if err != nil {
		return // gRPC is closing
	}
	n.sc, n.s = sc, nodeState{sc: sc, state: connectivity.Connecting}
	b.nodes[id] = n
	if old != nil {
		old.sc.Shutdown()
	}
	sc.Connect()
}

// changed follows one connection: it is always wanted.
func (b *nodeBalancer) changed(id string, n *nodeConn, s balancer.SubConnState) {
	if b.nodes[id] != n {
		return
	}
	switch s.ConnectivityState {
	case connectivity.Idle:
		n.sc.Connect()
		if n.s.state == connectivity.TransientFailure {
			return // fails until it is connected
		}
	case connectivity.Connecting:
		if n.s.state == connectivity.TransientFailure {
			return
		}
	}
	n.s.state, n.s.err = s.ConnectivityState, s.ConnectionError
	b.publish()
}

// publish hands gRPC a picker of the state as it is.
func (b *nodeBalancer) publish() {
	p := &picker{lb: b.lb, nodes: make(map[string]nodeState, len(b.nodes))}
	state := connectivity.TransientFailure
	for id, n := range b.nodes {
		p.nodes[id] = n.s
		switch {
		case n.s.state == connectivity.Ready:
			state = connectivity.Ready
		case n.s.state != connectivity.TransientFailure && state != connectivity.Ready:
			state = connectivity.Connecting
		}
	}
	b.cc.UpdateState(balancer.State{ConnectivityState: state, Picker: p})
}

// ResolverError cannot come: the resolver reports none.
func (b *nodeBalancer) ResolverError(error) {}

// UpdateSubConnState is not used: connections have listeners.
func (b *nodeBalancer) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle connects.
func (b *nodeBalancer) ExitIdle() {
	for _, n := range b.nodes {
		n.sc.Connect()
	}
}

// Close is called by gRPC, which closes the connections.
func (b *nodeBalancer) Close() {}

// picker is immutable.
type picker struct {
	lb    *LB
	nodes map[string]nodeState
}

// Pick says where one call goes.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if id, ok := info.Ctx.Value(pinned{}).(string); ok { // a probe
		n, err := p.ready(id)
		return balancer.PickResult{SubConn: n.sc}, err
	}
	c := &call{lb: p.lb, ctx: info.Ctx}
	key, cost := p.lb.cfg.Key(info.Ctx, info.FullMethodName), max(1, p.lb.cfg.Cost(info.Ctx, info.FullMethodName))
	var err error
	if key != "" {
		c.ticket, err = p.lb.sdk.Acquire(info.Ctx, key, cost)
	} else {
		c.ticket, err = p.lb.sdk.AcquireAny(info.Ctx, cost)
	}
	if err != nil {
		return balancer.PickResult{}, refused(err)
	}
	c.base = c.ticket.Route().Topology()
	n, err := p.ready(c.ticket.ID())
	if err != nil {
		c.ticket.Done(sdk.Ignored)
		next, ok := p.next(key)
		if !p.lb.cfg.Next || !ok {
			return balancer.PickResult{}, err
		}
		n = next
	}
	r := balancer.PickResult{SubConn: n.sc, Done: c.done}
	if p.lb.cfg.Converge != nil {
		r.Metadata = metadata.Pairs(presentKey, converge.Present(c.base))
	}
	return r, nil
}

// ready returns the node's connection, or the error that lets the call wait for
// another picker, or fail.
func (p *picker) ready(id string) (nodeState, error) {
	n, ok := p.nodes[id]
	switch {
	case !ok: // of a topology that gRPC has not been told of yet, or no longer
		return n, balancer.ErrNoSubConnAvailable
	case n.state == connectivity.Ready:
		return n, nil
	case n.state == connectivity.TransientFailure:
		return n, unavailable(id, n.err)
	}
	return n, balancer.ErrNoSubConnAvailable
}

// next returns the first node in the key's order, or any without a key, that is
// connected.
func (p *picker) next(key string) (nodeState, bool) {
	if key == "" {
		for id := range maps.Keys(p.nodes) {
			if n := p.nodes[id]; n.state == connectivity.Ready {
				return n, true
			}
		}
		return nodeState{}, false
	}
	routes, err := p.lb.sdk.RouteN(nil, key, len(p.nodes))
	if err != nil {
		return nodeState{}, false
	}
	for _, r := range routes {
		if n := p.nodes[r.ID()]; n.state == connectivity.Ready {
			return n, true
		}
	}
	return nodeState{}, false
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
	ctx    context.Context
	ticket sdk.Ticket
	base   *topology.Topology // that routed it
}

// done ends the call.
func (c *call) done(info balancer.DoneInfo) {
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
	if info.Err == nil {
		return sdk.Success
	}
	if !info.BytesSent {
		return sdk.Ignored
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
