package ownergrpc_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/sdk/grpclb"
	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/sdk/owner/memlease"
	"github.com/shardd/shardd/sdk/owner/ownergrpc"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) {
	grpclb.Register()
	goleak.VerifyTestMain(m)
}

// keyOf takes the key from the health service's name, for want of another message.
func keyOf(_ context.Context, req any) string {
	r, _ := req.(*healthpb.HealthCheckRequest)
	return r.GetService()
}

func streamKey(ctx context.Context) string {
	return metadata.ValueFromIncomingContext(ctx, "shardd-key")[0]
}

// TestGuard: two real servers; a client whose source is silent converges by one trailer.
func TestGuard(t *testing.T) {
	store := memlease.New()
	listeners := map[string]net.Listener{}
	var nodes []topology.Node
	for _, id := range []string{"a", "b"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[id] = ln
		nodes = append(nodes, topology.Node{ID: id, Addr: ln.Addr().String(), Weight: 1})
	}
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Slots}, Nodes: nodes})
	plane.Assign("k", "a")
	owners := map[string]*owner.Owner{}
	for id, ln := range listeners {
		client := plane.Client()
		o, err := owner.New(client, store, owner.Config{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		owners[id] = o
		past := converge.Remember(client)
		defer past.Close()
		g := &owner.Guard{Owner: o, Past: past, Wait: 5 * time.Second}
		server := grpc.NewServer(grpc.UnaryInterceptor(ownergrpc.Unary(g, keyOf)), grpc.StreamInterceptor(ownergrpc.Stream(g, streamKey)))
		h := health.NewServer()
		h.SetServingStatus("k", healthpb.HealthCheckResponse_SERVING)
		healthpb.RegisterHealthServer(server, h)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(ln) }()
		defer func() { server.Stop(); <-ended }()
	}
	src := converge.New(&firstOnly{Plane: plane})
	client, err := sdk.New(src)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	lb := grpclb.New(client, grpclb.Config{Converge: src})
	defer lb.Close()
	conn, err := lb.NewClient(grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "shardd-key", "k")
	call := func() error {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "k"})
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	plane.Assign("k", "b")
	for _, err := owners["a"].Owns("k"); err == nil; _, err = owners["a"].Owns("k") {
		time.Sleep(time.Millisecond)
	}
	if err := call(); err != nil || client.Topology().Ref() != plane.Topology().Ref() {
		t.Errorf("%v, on %v", err, client.Topology().Version())
	}
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Errorf("a stream: %v", err)
	}
	// Straight to the wrong node, without a word about the version.
	direct, err := grpc.NewClient(nodes[0].Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	if _, err := healthpb.NewHealthClient(direct).Check(ctx, &healthpb.HealthCheckRequest{Service: "k"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the wrong node: %v", err)
	}
}

// firstOnly is a source that brings one topology and then says nothing.
type firstOnly struct{ *shardtest.Plane }

func (f *firstOnly) Watch(ctx context.Context, _ topology.Ref, fn func(*topology.Topology) error) error {
	if err := fn(f.Topology()); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func Example() {
	guard := &owner.Guard{} // with its Owner and Past
	server := grpc.NewServer(
		grpc.UnaryInterceptor(ownergrpc.Unary(guard, func(_ context.Context, req any) string { return "the key in req" })),
		grpc.StreamInterceptor(ownergrpc.Stream(guard, func(ctx context.Context) string { return "the key in its metadata" })))
	fmt.Println(len(server.GetServiceInfo()))
	// Output: 0
}
