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
// it ends; one without goes where AcquireAny says. There is one connection a node. It
// is opened as soon as the node is published, joining nodes included, so that it is
// there before the first call; when the node has left it takes no new call and closes
// after its last. A call whose node is not connected yet waits; if connecting failed it
// fails with Unavailable (calls that wait for ready wait on).
//
// # Cost
//
// A pick is an admission (package sdk), a map lookup and a closure for the end of the
// call, which gRPC asks for.
//
// # Source
//
// grpc-go's balancer contract: the picker is immutable, a new one is made on every
// change of state, and Pick does not block. gRPC's ring_hash takes its key from a
// header as Metadata does (proposal A76).
//
// # What it does not do
//
// It limits neither age nor number of calls of a connection: with HTTP/2 that is the
// server's part (keepalive.ServerParameters.MaxConnectionAge). gRPC's own default
// without it is pick_first: all calls to one node.
package grpclb

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

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
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/sdk/loadfeed"
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

// Config configures an LB. The zero value takes the defaults.
type Config struct {
	// Key returns the key of a call, "" if it has none and any node will do; nil
	// means that of Metadata.
	Key func(ctx context.Context, method string) string
	// Metadata is the name in a call's metadata whose value is its key; "" means
	// "shardd-key".
	Metadata string
	// Cost returns what the call adds to a node's load, at least 1; nil means 1.
	Cost func(ctx context.Context, method string) int64
	// Next lets calls go on to the next node in order while their node is not
	// connected: for servers of which any can answer. Such a call is in no load.
	Next bool
	// Feed is given the reports in trailers (package grpcreport), and asked which
	// nodes to probe; nil means that reports go to bounded load alone.
	Feed *loadfeed.Feed
	// ProbeTimeout bounds a probe; 0 means 1 s.
	ProbeTimeout time.Duration
	// Converge says in each call by which version it was routed, and takes the newer
	// one from a server that answers that it is stale; unary calls are then sent
	// once more. nil means not.
	Converge *converge.Source
}

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
	cfg.Metadata = cmp.Or(cfg.Metadata, "shardd-key")
	cfg.ProbeTimeout = cmp.Or(cfg.ProbeTimeout, time.Second)
	if cfg.Key == nil {
		cfg.Key = func(ctx context.Context, _ string) string {
			md, _ := metadata.FromOutgoingContext(ctx)
			if v := md.Get(cfg.Metadata); len(v) > 0 {
				return v[0]
			}
			return ""
		}
	}
	if cfg.Cost == nil {
		cfg.Cost = func(context.Context, string) int64 { return 1 }
	}
	lb := &LB{sdk: client, cfg: cfg, asked: make(map[string]bool)}
	lb.ctx, lb.cancel = context.WithCancel(context.Background())
	return lb
}

// NewClient returns a connection to all nodes. Give it to generated code; close it
// before the LB. Call Register before. The error is gRPC's.
func (lb *LB) NewClient(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	own := []grpc.DialOption{grpc.WithResolvers(&resolverBuilder{lb}), grpc.WithDisableServiceConfig(),
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
	return &nodeBalancer{cc: cc, nodes: make(map[string]*nodeConn)}
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
