package grpclb

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// nodeBalancer holds the connections to the nodes. gRPC calls its methods one at a
// time, and listeners too; timers and picks are what the lock is for. It is taken
// before gRPC's own, and never by a pick.
type nodeBalancer struct {
	cc balancer.ClientConn
	lb *LB

	mu      sync.Mutex
	closed  bool
	nodes   map[string]*node // by id
	leaving []*connection    // of nodes that left, until they are cut
}

// node is one stay of a node at an address.
type node struct {
	id     string
	addr   resolver.Address
	conns  []*connection // as many as are kept
	ending []*connection // replaced
}

// open returns how many connections there are, and forgets those that have ended.
func (n *node) open() int {
	n.ending = slices.DeleteFunc(n.ending, func(c *connection) bool { return c.flight.Load() <= 0 })
	open := len(n.conns) + len(n.ending)
	for _, c := range n.conns {
		if c.next != nil {
			open++
		}
	}
	return open
}

// UpdateClientConnState takes the nodes of a new topology.
func (b *nodeBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	lb, ok := s.ResolverState.Attributes.Value(lbKey{}).(*LB)
	if !ok {
		return errors.New("grpclb: the addresses are not from this package's resolver; connect by LB.NewClient")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lb = lb
	there := make(map[string]bool)
	for _, e := range s.ResolverState.Endpoints {
		id, ok := e.Attributes.Value(nodeKey{}).(string)
		if !ok || len(e.Addresses) == 0 {
			continue
		}
		there[id] = true
		b.arrive(id, e.Addresses[0])
	}
	for id, n := range b.nodes {
		if !there[id] {
			delete(b.nodes, id)
			b.leave(n)
		}
	}
	b.publish()
	return nil
}

// arrive makes the connections of a node, anew if its address has changed.
func (b *nodeBalancer) arrive(id string, addr resolver.Address) {
	old := b.nodes[id]
	if old != nil && old.addr.Addr == addr.Addr {
		return
	}
	n := &node{id: id, addr: addr}
	for range b.lb.cfg.Conns {
		c := b.connect(n)
		if c == nil {
			break // gRPC is closing
		}
		n.conns = append(n.conns, c)
	}
	b.nodes[id] = n
	if old != nil {
		b.leave(old)
	}
}

// leave lets what a node's connections carry end, and cuts it when the grace is over.
func (b *nodeBalancer) leave(n *node) {
	b.leaving = slices.DeleteFunc(b.leaving, func(c *connection) bool { return c.flight.Load() <= 0 })
	for _, c := range n.conns {
		c.shut()
	}
	for _, c := range slices.Concat(n.conns, n.ending) {
		if d := b.lb.cfg.Grace; d > 0 {
			c.grace = time.AfterFunc(d, c.wire.close)
			b.leaving = append(b.leaving, c)
		}
	}
}

// changed follows one connection: it is always wanted.
func (b *nodeBalancer) changed(c *connection, s balancer.SubConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.gone || b.closed {
		return
	}
	switch s.ConnectivityState {
	case connectivity.Idle, connectivity.Connecting:
		if s.ConnectivityState == connectivity.Idle {
			stop(c.age)
			c.sc.Connect()
		}
		if c.state != connectivity.Ready {
			return // waited for already, or down until it is connected
		}
		c.state, c.err = connectivity.Connecting, nil
		c.await()
	case connectivity.Ready:
		c.state, c.err = connectivity.Ready, nil
		if c.old != nil {
			c.replaced()
		}
		c.opened()
	case connectivity.TransientFailure:
		stop(c.warm)
		c.state, c.err = connectivity.TransientFailure, s.ConnectionError
		if c.old != nil {
			c.failed()
		}
	}
	b.publish()
}

// publish hands gRPC a picker of the state as it is.
func (b *nodeBalancer) publish() {
	p := &picker{lb: b.lb, nodes: make(map[string]nodeState, len(b.nodes))}
	state := connectivity.TransientFailure
	for id, n := range b.nodes {
		s := n.state()
		p.nodes[id] = s
		switch {
		case len(s.ready) > 0:
			state = connectivity.Ready
			continue
		case s.err == nil && state != connectivity.Ready:
			state = connectivity.Connecting
		}
		p.down = append(p.down, id)
	}
	b.cc.UpdateState(balancer.State{ConnectivityState: state, Picker: p})
}

// nodeState is what pickers know of a node.
type nodeState struct {
	ready []*connection
	err   error // why there is none; nil = it is being connected to
}

func (n *node) state() (s nodeState) {
	waiting := false
	for _, c := range n.conns {
		switch c.state {
		case connectivity.Ready:
			s.ready = append(s.ready, c)
		case connectivity.TransientFailure:
			s.err = c.err
		default:
			waiting = true
		}
	}
	if waiting || len(s.ready) > 0 {
		s.err = nil
	}
	return s
}

// ResolverError cannot come: the resolver reports none.
func (b *nodeBalancer) ResolverError(error) {}

// UpdateSubConnState is not used: connections have listeners.
func (b *nodeBalancer) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle connects.
func (b *nodeBalancer) ExitIdle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range maps.Values(b.nodes) {
		for _, c := range n.conns {
			c.sc.Connect()
		}
	}
}

// Close ends timers and streams; gRPC closes the connections.
func (b *nodeBalancer) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for n := range maps.Values(b.nodes) {
		for _, c := range n.conns {
			c.end()
		}
	}
	for _, c := range b.leaving {
		stop(c.grace)
		c.wire.close() // its calls end with the client connection anyway
	}
}

// end stops what belongs to the connection beside it.
func (c *connection) end() {
	stop(c.age)
	stop(c.warm)
	if c.endOOB != nil {
		c.endOOB()
	}
	if c.next != nil {
		c.next.end()
	}
}
