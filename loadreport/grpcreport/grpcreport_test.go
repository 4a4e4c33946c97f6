package grpcreport_test

import (
	"context"
	"net"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/loadreport/grpcreport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs gRPC's own health service with load counted, on a real socket.
func serve(t *testing.T, load *loadreport.Server) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(grpc.UnaryInterceptor(grpcreport.Unary(load)), grpc.StreamInterceptor(grpcreport.Stream(load)))
	healthpb.RegisterHealthServer(server, health.NewServer())
	grpcreport.RegisterProbe(server, load)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-ended
	})
	return conn
}

func TestReports(t *testing.T) {
	load := loadreport.New(loadreport.Config{})
	load.Set("queue_depth", 4)
	conn := serve(t, load)
	client := healthpb.NewHealthClient(conn)
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), grpcreport.CostKey, "20"))
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil { // it is in flight
		t.Fatal(err)
	}
	check := func(what string, md metadata.MD) {
		t.Helper()
		r, ok := grpcreport.FromTrailer(md)
		if !ok || r.InFlight != 20 || r.Named["queue_depth"] != 4 {
			t.Errorf("%s: %+v, %v", what, r, ok)
		}
	}
	var md metadata.MD
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Trailer(&md)); err != nil {
		t.Fatal(err)
	}
	check("an answer", md)
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "no"}, grpc.Trailer(&md)); status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	check("an error", md)
	r, err := grpcreport.Probe(t.Context(), conn)
	if err != nil || r.InFlight != 20 || r.EPS != 0 {
		t.Errorf("a probe: %+v, %v", r, err)
	}
	cancel()
	for err == nil {
		_, err = stream.Recv()
	}
	if _, ok := grpcreport.FromTrailer(metadata.Pairs(grpcreport.Trailer, "\xff")); ok {
		t.Error("nonsense was read")
	}
}
