package pickers

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// conn stands for gRPC's own ClientConn: every connection that a policy asks
// for is ready as soon as the policy has let go of its locks. There is no
// network behind it.
type conn struct {
	balancer.ClientConn // nil: what is not implemented here is not called
	balancer            balancer.Balancer

	mu     sync.Mutex
	events []func() // what the policy is to be told next
	picker balancer.Picker
	state  connectivity.State
}

// connect builds the policy over n nodes and brings all of them up.
func connect(policy, config string, n int) (*conn, error) {
	b := balancer.Get(policy)
	if b == nil {
		return nil, fmt.Errorf("pickers: gRPC knows no policy %q", policy)
	}
	cfg, err := parse(b, config)
	if err != nil {
		return nil, err
	}
	c := &conn{}
	c.balancer = b.Build(c, balancer.BuildOptions{})
	lb, _ := cfg.(serviceconfig.LoadBalancingConfig)
	err = c.balancer.UpdateClientConnState(balancer.ClientConnState{ResolverState: nodes(n), BalancerConfig: lb})
	if err != nil {
		c.balancer.Close()
		return nil, err
	}
	c.settle()
	return c, nil
}

func nodes(n int) resolver.State {
	var s resolver.State
	for i := range n {
		a := resolver.Address{Addr: fmt.Sprintf("10.0.%d.%d:80", i>>8, i&255)}
		s.Addresses = append(s.Addresses, a)
		s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{a}})
	}
	return s
}

// settle tells the policy what has happened until nothing more does.
func (c *conn) settle() {
	for {
		c.mu.Lock()
		if len(c.events) == 0 {
			c.mu.Unlock()
			return
		}
		next := c.events[0]
		c.events = c.events[1:]
		c.mu.Unlock()
		next()
	}
}

// current returns the policy's newest picker.
func (c *conn) current() balancer.Picker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.picker
}

func (c *conn) later(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, f)
}

// NewSubConn makes a connection that waits to be asked to connect.
func (c *conn) NewSubConn(_ []resolver.Address, o balancer.NewSubConnOptions) (balancer.SubConn, error) {
	s := &subConn{conn: c, tell: o.StateListener}
	if s.tell == nil { // policies built on package base listen in the old way
		//nolint:staticcheck // deprecated, and yet what go-zero's p2c_ewma is told by
		s.tell = func(state balancer.SubConnState) { c.balancer.UpdateSubConnState(s, state) }
	}
	return s, nil
}

// UpdateState takes the policy's newest picker.
func (c *conn) UpdateState(s balancer.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.picker, c.state = s.Picker, s.ConnectivityState
}

func (c *conn) RemoveSubConn(balancer.SubConn)                       {}
func (c *conn) UpdateAddresses(balancer.SubConn, []resolver.Address) {}
func (c *conn) ResolveNow(resolver.ResolveNowOptions)                {}
func (c *conn) Target() string                                       { return "bench" }

// MetricsRecorder records nothing.
func (c *conn) MetricsRecorder() estats.MetricsRecorder { return recorder{} }

type recorder struct {
	estats.UnimplementedMetricsRecorder
}

// subConn is a connection of conn.
type subConn struct {
	balancer.SubConn // nil: what is not implemented here is not called
	conn             *conn
	tell             func(balancer.SubConnState)
}

// Connect is ready at once, as far as the policy can see.
func (s *subConn) Connect() {
	for _, state := range []connectivity.State{connectivity.Connecting, connectivity.Ready} {
		s.conn.later(func() { s.tell(balancer.SubConnState{ConnectivityState: state}) })
	}
}

// RegisterHealthListener finds the connection well.
func (s *subConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	s.conn.later(func() { f(balancer.SubConnState{ConnectivityState: connectivity.Ready}) })
}

func (s *subConn) UpdateAddresses([]resolver.Address) {}
func (s *subConn) Shutdown()                          {}
