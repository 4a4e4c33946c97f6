package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/loadreport/grpcreport"
)

const method = "/example.Where/Am"

// server is one gRPC server.
type server struct {
	id, addr string
	served   atomic.Int64
	slow     atomic.Bool
	grpc     *grpc.Server
	ended    chan struct{}
}

// serve starts a server that says how loaded it is: in the trailer of each answer, when it
// is probed, and out of band.
func serve(id string) (*server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	load := loadreport.New(loadreport.Config{})
	s := &server{id: id, addr: ln.Addr().String(), ended: make(chan struct{}),
		grpc: grpc.NewServer(grpc.UnaryInterceptor(grpcreport.Unary(load)), grpc.StreamInterceptor(grpcreport.Stream(load)))}
	grpcreport.RegisterProbe(s.grpc, load)
	grpcreport.RegisterOOB(s.grpc, load, 50*time.Millisecond)
	s.grpc.RegisterService(&grpc.ServiceDesc{ServiceName: "example.Where", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Am", Handler: s.am}}}, s)
	go func() {
		defer close(s.ended)
		_ = s.grpc.Serve(ln) // ends with Stop
	}()
	return s, nil
}

func (s *server) stop() {
	s.grpc.Stop()
	<-s.ended
}

// am is what generated code would call; the signature is gRPC's.
func (s *server) am(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // context-as-argument: the signature is gRPC's
	in := new(emptypb.Empty)
	if err := decode(in); err != nil {
		return nil, err
	}
	return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: s, FullMethod: method}, func(context.Context, any) (any, error) {
		s.served.Add(1)
		if s.slow.Load() {
			time.Sleep(100 * time.Millisecond)
		}
		return wrapperspb.String(s.id), nil
	})
}
