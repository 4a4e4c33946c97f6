package grpclb_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/sdk/grpclb"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) {
	grpclb.Register()
	goleak.VerifyTestMain(m)
}

func plane(t *testing.T, all []*backend) *shardtest.Plane {
	t.Helper()
	var nodes []topology.Node
	for _, b := range all {
		nodes = append(nodes, topology.Node{ID: b.id, Addr: b.addr, Weight: 1})
	}
	return shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: nodes})
}

func connect(t *testing.T, c *sdk.Client, cfg grpclb.Config) *grpc.ClientConn {
	t.Helper()
	lb := grpclb.New(c, cfg)
	conn, err := lb.NewClient(grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); lb.Close() })
	return conn
}

func where(t *testing.T, conn *grpc.ClientConn, key string, opts ...grpc.CallOption) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "shardd-key", key)
	}
	out := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, method, &emptypb.Empty{}, out, opts...)
	return out.GetValue(), err
}

// TestKeys: each call goes to its key's owner, before and after nodes come, move and
// go, without an error.
func TestKeys(t *testing.T) {
	all := backends(t, 4, nil)
	p := plane(t, all[:3])
	c := p.Client()
	conn := connect(t, c, grpclb.Config{})
	check := func() {
		t.Helper()
		for i := range 60 {
			key := fmt.Sprint("user:", i)
			if got, err := where(t, conn, key); err != nil || got != p.Owner(key) {
				t.Fatalf("%s: %q, %v, want %q", key, got, err, p.Owner(key))
			}
		}
	}
	check()
	p.Add(topology.Node{ID: "g3", Addr: all[3].addr, Weight: 1})
	check()
	p.Remove("g0")
	check()
	moved := &backend{id: "g1", load: loadreport.New(loadreport.Config{})}
	moved.listen(t, "127.0.0.1:0")
	defer moved.stop()
	p.SetAddr("g1", moved.addr)
	check()
	if moved.served.Load() == 0 || all[3].served.Load() == 0 {
		t.Error("a node that came got no calls")
	}
	for _, n := range c.LoadStats().Nodes {
		if n.InFlight != 0 {
			t.Errorf("%+v", n)
		}
	}
}

// TestDown: calls for a node that cannot be connected to fail, or go on to the next in
// order if that is wanted, and come back to it.
func TestDown(t *testing.T) {
	all := backends(t, 3, nil)
	p := plane(t, all)
	c := p.Client()
	strict, next := connect(t, c, grpclb.Config{}), connect(t, c, grpclb.Config{Next: true})
	key := ""
	for i := 0; p.Owner(key) != "g0"; i++ {
		key = fmt.Sprint(i)
	}
	if got, err := where(t, strict, key); err != nil || got != "g0" {
		t.Fatal(got, err)
	}
	all[0].stop()
	order, err := c.RouteN(nil, key, 2)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "going on", func() bool { got, err := where(t, next, key); return err == nil && got == order[1].ID() })
	until(t, "failing", func() bool { _, err := where(t, strict, key); return status.Code(err) == codes.Unavailable })
	all[0].listen(t, all[0].addr)
	until(t, "coming back", func() bool { got, err := where(t, strict, key); return err == nil && got == "g0" })
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(8 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 8 s", what)
		}
	}
}

// TestConverge: one call by an old version brings the newer one, and is answered.
func TestConverge(t *testing.T) {
	var past atomic.Pointer[converge.Past]
	all := backends(t, 2, func(int) func(context.Context) error {
		return func(ctx context.Context) error {
			ref, err := converge.Parse(metadata.ValueFromIncomingContext(ctx, "shardd-topology")[0])
			if err != nil {
				return err
			}
			if answer, newer := past.Load().Answer(ref); newer {
				if err := grpc.SetTrailer(ctx, metadata.Pairs("shardd-topology-bin", string(answer))); err != nil {
					return err
				}
				return status.Error(codes.FailedPrecondition, "stale")
			}
			return nil
		}
	})
	p := plane(t, all)
	past.Store(converge.Remember(p.Client()))
	defer past.Load().Close()
	src := converge.New(&once{Plane: p})
	c, err := sdk.New(src)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, c, grpclb.Config{Converge: src})
	p.Publish(func(d *topology.Declared) { d.Nodes[0].Weight = 5 })
	got, err := where(t, conn, "k")
	if err != nil || got != p.Owner("k") || c.Topology().Ref() != p.Topology().Ref() {
		t.Errorf("%q, %v, on %v", got, err, c.Topology().Version())
	}
	if n := all[0].served.Load() + all[1].served.Load(); n != 2 {
		t.Errorf("%d calls for one", n)
	}
}

// once is a source that brings one topology and then no other.
type once struct{ *shardtest.Plane }

func (o *once) Watch(ctx context.Context, _ topology.Ref, fn func(*topology.Topology) error) error {
	if err := fn(o.Topology()); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestErrors: what the SDK cannot answer.
func TestErrors(t *testing.T) {
	p := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}})
	conn := connect(t, p.Client(), grpclb.Config{})
	if _, err := where(t, conn, "k"); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}
