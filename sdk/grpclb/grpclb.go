// Package grpclb sends each gRPC call to the node of a topology that its key belongs
// to, or to any node by a load-balancing policy: a resolver and a balancer for
// grpc-go.
//
//	func main() {
//		grpclb.Register() // once, before the first connection
//		...
//		lb := grpclb.New(client, grpclb.Config{Metadata: "user-id"})
//		conn, err := lb.NewClient(grpc.WithTransportCredentials(creds))
//		api := pb.NewAPIClient(conn)
//
// # Law
//
// A call with a key goes where sdk.Client.Acquire says and is in that node's load until
// it ends; one without goes where AcquireAny says.
//
// Connections are opened as soon as the node is published, joining nodes included, and
// carry calls when they are ready. A node that is not connected counts as down: a call
// without a key goes to another, and with Config.Next so does one with a key. Otherwise
// a call for it waits for Config.WarmTimeout at most and then fails with Unavailable
// (calls that wait for ready wait on).
//
// A connection that is old, or has carried as many calls as it may, is replaced: the new
// one is made first and takes over when it is ready, and the old one ends with its last
// call. If no new one can be made the old one stays. There are never more than
// Config.MaxConns to one node, those that only finish calls included. When a node has
// left it takes no new call; what it carries ends, or is cut after Config.Grace.
//
// # Cost
//
// A pick is an admission (package sdk), a map lookup, three atomic operations and a
// closure for the end of the call, which gRPC asks for.
//
// # Source
//
// grpc-go's balancer contract: the picker is immutable, a new one is made on every
// change of state, and Pick does not block. gRPC's ring_hash takes its key from a
// header as Metadata does (proposal A76). Age with a chance of a tenth is that of gRPC
// servers' MAX_CONNECTION_AGE (proposal A9), with which it goes together: whoever comes
// first replaces the connection. ORCA out of band: proposal A51.
//
// # What it does not do
//
// It does not use service configs, nor gRPC's client-side health checks. gRPC's own
// default without it is pick_first: all calls to one node.
package grpclb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/loadreport/grpcreport"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

const (
	// Name is that of the balancer and the resolver's scheme.
	Name = "shardd"
	// answerKey carries a newer topology in a trailer; see package converge.
	answerKey = "shardd-topology-bin"
	// presentKey says in a call's metadata by which topology it was routed.
	presentKey = "shardd-topology"
)

var register sync.Once // gRPC's registry is the process's

// Register makes the balancer known to gRPC. gRPC wants that before the first
// connection, as in main or an init function of the program.
func Register() { register.Do(func() { balancer.Register(builder{}) }) }

// LB is the resolver and balancer over one client. Make one with New, end it with
// Close after its connections.
type LB struct {
	sdk *sdk.Client
	cfg Config

	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex // guards what follows
	conn   *grpc.ClientConn
	asked  map[string]bool // nodes being probed
	closed bool
	work   sync.WaitGroup
}

// New returns a balancer over the nodes that client follows.
func New(client *sdk.Client, cfg Config) *LB {
	lb := &LB{sdk: client, cfg: cfg.withDefaults(), asked: make(map[string]bool)}
	lb.ctx, lb.cancel = context.WithCancel(context.Background())
	return lb
}

// NewClient returns a connection to all nodes, and begins to connect to them. Give it to
// generated code; close it before the LB. Call Register before. opts come after those of
// this package: grpc.WithContextDialer replaces Config.Dial, and with gRPC's default a
// client that makes no call for 30 min lets go of its connections until the next
// (grpc.WithIdleTimeout). The error is gRPC's.
func (lb *LB) NewClient(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	own := []grpc.DialOption{grpc.WithResolvers(&resolverBuilder{lb}), grpc.WithContextDialer(lb.dial), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"` + Name + `":{}}]}`)}
	if lb.cfg.Converge != nil {
		own = append(own, grpc.WithChainUnaryInterceptor(lb.again))
	}
	name := "cluster"
	if t := lb.sdk.Topology(); t != nil {
		name = t.Cluster()
	}
	conn, err := grpc.NewClient(Name+":///"+name, append(own, opts...)...)
	if err != nil {
		return nil, err
	}
	conn.Connect()
	lb.mu.Lock()
	defer lb.mu.Unlock()
	if lb.conn == nil {
		lb.conn = conn
	}
	return conn, nil
}

// Close waits for probes to end.
func (lb *LB) Close() {
	lb.mu.Lock()
	lb.closed = true
	lb.mu.Unlock()
	lb.cancel()
	lb.work.Wait()
}

// again sends a unary call once more if a server brought a newer topology.
func (lb *LB) again(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	var trailer metadata.MD
	err := invoke(ctx, method, req, reply, cc, append(opts[:len(opts):len(opts)], grpc.Trailer(&trailer))...)
	if status.Code(err) == codes.FailedPrecondition && len(trailer.Get(answerKey)) > 0 {
		return invoke(ctx, method, req, reply, cc, opts...) // the balancer has taken it
	}
	return err
}

// probes starts the probes that the policy asks for now.
func (lb *LB) probes() {
	var room [8]string
	ids := lb.cfg.Feed.Probes(rand.Uint64(), room[:0])
	if len(ids) == 0 {
		return
	}
	lb.mu.Lock()
	defer lb.mu.Unlock()
	for _, id := range ids {
		if lb.closed || lb.conn == nil || lb.asked[id] {
			continue
		}
		lb.asked[id] = true
		lb.work.Go(func() { lb.probe(lb.conn, id) })
	}
}

func (lb *LB) probe(conn *grpc.ClientConn, id string) {
	ctx, cancel := context.WithTimeout(context.WithValue(lb.ctx, pinned{}, id), lb.cfg.ProbeTimeout)
	defer cancel()
	r, err := grpcreport.Probe(ctx, conn)
	lb.mu.Lock()
	delete(lb.asked, id)
	lb.mu.Unlock()
	if err == nil {
		lb.cfg.Feed.Take(id, r, true)
	}
}

// pinned is the key in a context of the node that a call is for.
type pinned struct{}

// resolverBuilder resolves to the nodes of the client's topology.
type resolverBuilder struct{ lb *LB }

func (b *resolverBuilder) Scheme() string { return Name }

func (b *resolverBuilder) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	r := &nodeResolver{}
	r.end = b.lb.sdk.OnChange(func(ch sdk.Change) { _ = cc.UpdateState(b.lb.state(ch.To)) })
	return r, nil
}

type nodeResolver struct{ end func() }

func (r *nodeResolver) ResolveNow(resolver.ResolveNowOptions) {} // the client is told by itself
func (r *nodeResolver) Close()                                { r.end() }

// keys of attributes.
type (
	nodeKey struct{}
	lbKey   struct{}
)

// state lists the nodes that take calls, or are about to.
func (lb *LB) state(t *topology.Topology) resolver.State {
	s := resolver.State{Attributes: attributes.New(lbKey{}, lb)}
	for _, n := range t.Nodes() {
		if n.State != topology.StateLeft && n.Addr != "" {
			s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: n.Addr}},
				Attributes: attributes.New(nodeKey{}, n.ID)})
		}
	}
	return s
}

type builder struct{}

func (builder) Name() string { return Name }

func (builder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &nodeBalancer{cc: cc, nodes: make(map[string]*node)}
}

// ParseConfig takes no configuration.
func (builder) ParseConfig([]byte) (serviceconfig.LoadBalancingConfig, error) { return noConfig{}, nil }

type noConfig struct {
	serviceconfig.LoadBalancingConfig
}

// unavailable is the error of a node that cannot be connected to.
func unavailable(id string, err error) error {
	return status.Error(codes.Unavailable, fmt.Sprintf("grpclb: node %s: %v", id, err))
}
