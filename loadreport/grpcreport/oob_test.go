package grpcreport_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	orcaservicepb "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/loadreport/grpcreport"
)

// start runs a server on a real socket and returns a connection to it.
func start(t *testing.T, server *grpc.Server) *grpc.ClientConn {
	t.Helper()
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

// still has no processor of its own, so that reports are the same every time.
func still() *loadreport.Server {
	return loadreport.New(loadreport.Config{CPU: func() (time.Duration, float64) { return 0, 1 }})
}

// TestOOB: a stream brings what has changed since, is not counted itself, and ends with
// its context.
func TestOOB(t *testing.T) {
	load := still()
	server := grpc.NewServer(grpc.StreamInterceptor(grpcreport.Stream(load)))
	grpcreport.RegisterOOB(server, load, time.Millisecond)
	conn := start(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy := load.Begin(3)
	defer busy.Done(false)
	load.SetUtilization(.5)
	n := 0
	err := grpcreport.Watch(ctx, conn, time.Millisecond, func(r loadreport.Report) {
		want := loadreport.Report{InFlight: 3, HasInFlight: true, Utilization: .5}
		if n > 0 && r.Utilization != .75 {
			return // made before the change
		}
		if n > 0 {
			want.Utilization = .75
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Error(diff)
		}
		if n++; n == 3 {
			cancel()
		}
		load.SetUtilization(.75)
	})
	if n < 3 || status.Code(err) != codes.Canceled {
		t.Errorf("%d reports, then %v", n, err)
	}
}

// TestOOBInterval: reports come as often as is asked for, and not more often than the
// server allows.
func TestOOBInterval(t *testing.T) {
	f := func(least, every, window time.Duration, want int) {
		t.Helper()
		server := grpc.NewServer()
		grpcreport.RegisterOOB(server, still(), least)
		ctx, cancel := context.WithTimeout(t.Context(), window)
		defer cancel()
		n := 0
		err := grpcreport.Watch(ctx, start(t, server), every, func(loadreport.Report) { n++ })
		if want > 1 && n < want || want == 1 && n != 1 || status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("least %v, every %v: %d reports, want %d; %v", least, every, n, want, err)
		}
	}
	f(time.Millisecond, 2*time.Millisecond, 500*time.Millisecond, 10)
	f(time.Millisecond, 0, 500*time.Millisecond, 10)
	f(0, time.Nanosecond, 300*time.Millisecond, 1)
	f(time.Millisecond, time.Hour, 300*time.Millisecond, 1)
	f(time.Hour, time.Millisecond, 300*time.Millisecond, 1)
}

// TestOOBUnimplemented: a server without the service says so.
func TestOOBUnimplemented(t *testing.T) {
	err := grpcreport.Watch(t.Context(), start(t, grpc.NewServer()), time.Second, func(loadreport.Report) { t.Error("a report") })
	if status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}

// TestWatchesGRPC: Watch reads what grpc-go's own service streams.
func TestWatchesGRPC(t *testing.T) {
	metrics := orca.NewServerMetricsRecorder()
	metrics.SetCPUUtilization(.25)
	metrics.SetApplicationUtilization(1.5)
	metrics.SetQPS(100)
	metrics.SetEPS(2)
	metrics.SetNamedUtilization("queue", .5)
	server := grpc.NewServer()
	if err := orca.Register(server, orca.ServiceOptions{ServerMetricsProvider: metrics}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got loadreport.Report
	err := grpcreport.Watch(ctx, start(t, server), 90*time.Second, func(r loadreport.Report) { got = r; cancel() })
	want := loadreport.Report{CPU: .25, Utilization: 1.5, QPS: 100, EPS: 2, Named: map[string]float64{"queue": .5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff, err)
	}
}

// TestGRPCWatches: the generated client of xds, which grpc-go's balancers use, reads
// what RegisterOOB streams.
func TestGRPCWatches(t *testing.T) {
	load := still()
	load.SetUtilization(.5)
	load.SetMemory(.125)
	load.Set("queue_depth", 7)
	defer load.Begin(1).Done(false)
	server := grpc.NewServer()
	grpcreport.RegisterOOB(server, load, time.Millisecond)
	stream, err := orcaservicepb.NewOpenRcaServiceClient(start(t, server)).StreamCoreMetrics(t.Context(),
		&orcaservicepb.OrcaLoadReportRequest{ReportInterval: durationpb.New(1500 * time.Microsecond), RequestCostNames: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	var r *orcapb.OrcaLoadReport
	for range 3 {
		if r, err = stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	got := []any{r.GetApplicationUtilization(), r.GetMemUtilization(), r.GetNamedMetrics()}
	want := []any{.5, .125, map[string]float64{"queue_depth": 7, "in_flight": 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOOBStops: a server that stops in an orderly way is not held up by a client that
// goes when it is told to.
func TestOOBStops(t *testing.T) {
	server := grpc.NewServer()
	grpcreport.RegisterOOB(server, still(), time.Millisecond)
	conn := start(t, server)
	var once sync.Once
	ended := make(chan struct{})
	err := grpcreport.Watch(t.Context(), conn, time.Millisecond, func(loadreport.Report) {
		once.Do(func() {
			go func() { defer close(ended); server.GracefulStop() }()
			go conn.Close()
		})
	})
	<-ended
	if err == nil || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
