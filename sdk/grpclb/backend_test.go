package grpclb_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/loadreport/grpcreport"
	"github.com/shardd/shardd/topology"
)

// backend is a real gRPC server: one method answers with its id, another streams it
// until the client goes.
type backend struct {
	id     string
	addr   string
	served atomic.Int64
	load   *loadreport.Server
	work   func(ctx context.Context) error // nil = nothing
	silent bool                            // no reports in trailers
	server *grpc.Server
	ended  chan error
	counted
}

// counted is a listener that counts connections, and can refuse them.
type counted struct {
	net.Listener
	refuse       atomic.Bool
	open, opened atomic.Int64
	last         atomic.Pointer[countedConn]
}

func (l *counted) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.refuse.Load() {
			c.Close()
			continue
		}
		l.open.Add(1)
		l.opened.Add(1)
		cc := &countedConn{Conn: c, end: sync.OnceFunc(func() { l.open.Add(-1) })}
		l.last.Store(cc)
		return cc, nil
	}
}

// cutOne closes the connection that was made last.
func (l *counted) cutOne() { l.last.Load().Close() }

type countedConn struct {
	net.Conn
	end func()
}

func (c *countedConn) Close() error {
	c.end()
	return c.Conn.Close()
}

const (
	method = "/test.Where/Am"
	stream = "/test.Where/Stay"
)

// listen serves on a real socket.
func (b *backend) listen(t *testing.T, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	b.addr = ln.Addr().String()
	b.serve(ln)
}

func (b *backend) serve(ln net.Listener) {
	b.Listener = ln
	var opts []grpc.ServerOption
	if !b.silent {
		opts = append(opts, grpc.UnaryInterceptor(grpcreport.Unary(b.load)), grpc.StreamInterceptor(grpcreport.Stream(b.load)))
	}
	b.server = grpc.NewServer(opts...)
	b.server.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Where", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Am", Handler: b.am}},
		Streams: []grpc.StreamDesc{{StreamName: "Stay", ServerStreams: true, Handler: b.stay}}}, b)
	grpcreport.RegisterProbe(b.server, b.load)
	grpcreport.RegisterOOB(b.server, b.load, time.Millisecond)
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.server.Serve(&b.counted) }()
}

func (b *backend) am(_ any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
	req := new(emptypb.Empty)
	if err := dec(req); err != nil {
		return nil, err
	}
	handler := func(ctx context.Context, _ any) (any, error) {
		b.served.Add(1)
		if b.work != nil {
			if err := b.work(ctx); err != nil {
				return nil, err
			}
		}
		return wrapperspb.String(b.id), nil
	}
	if in == nil {
		return handler(ctx, req)
	}
	return in(ctx, req, &grpc.UnaryServerInfo{FullMethod: method}, handler)
}

// stay sends the id once, and each time that it is asked to by a tick of the test's.
func (b *backend) stay(_ any, s grpc.ServerStream) error {
	if err := s.RecvMsg(new(emptypb.Empty)); err != nil {
		return err
	}
	b.served.Add(1)
	if err := s.SendMsg(wrapperspb.String(b.id)); err != nil {
		return err
	}
	<-s.Context().Done()
	return s.Context().Err()
}

func (b *backend) stop() {
	b.server.Stop()
	<-b.ended
}

func (b *backend) node() topology.Node { return topology.Node{ID: b.id, Addr: b.addr, Weight: 1} }

func newBackend(i int) *backend {
	return &backend{id: fmt.Sprint("g", i), load: loadreport.New(loadreport.Config{})}
}

func backends(t *testing.T, n int, work func(i int) func(context.Context) error) []*backend {
	t.Helper()
	var all []*backend
	for i := range n {
		b := newBackend(i)
		if work != nil {
			b.work = work(i)
		}
		b.listen(t, "127.0.0.1:0")
		t.Cleanup(func() { b.server.Stop() })
		all = append(all, b)
	}
	return all
}

// inMemory serves some backends without sockets, for tests in a bubble, and returns
// how to dial them.
func inMemory(t *testing.T, n int) ([]*backend, func(context.Context, string) (net.Conn, error)) {
	t.Helper()
	lines := make(map[string]*bufconn.Listener)
	var all []*backend
	for i := range n {
		b := newBackend(i)
		b.addr = b.id + ":1"
		lines[b.addr] = bufconn.Listen(1 << 16)
		b.serve(lines[b.addr])
		t.Cleanup(b.stop)
		all = append(all, b)
	}
	return all, func(ctx context.Context, addr string) (net.Conn, error) { return lines[addr].DialContext(ctx) }
}

// hold begins a stream and returns where it is, and how it ended.
func hold(t *testing.T, ctx context.Context, conn *grpc.ClientConn, key string) (where string, ended func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, "shardd-key", key))
	t.Cleanup(cancel)
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "Stay", ServerStreams: true}, stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendMsg(&emptypb.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	out := new(wrapperspb.StringValue)
	if err := s.RecvMsg(out); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- s.RecvMsg(out) }()
	return out.GetValue(), func() error {
		select {
		case err := <-end:
			end <- err
			return err
		default:
			return nil
		}
	}
}
