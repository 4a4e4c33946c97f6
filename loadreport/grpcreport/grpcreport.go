// Package grpcreport lets a gRPC server tell its clients how loaded it is: in the
// trailer of each answer, as ORCA has it, in answers to probes, and out of band, in
// ORCA's stream.
//
//	load := loadreport.New(loadreport.Config{})
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(grpcreport.Unary(load)),
//		grpc.StreamInterceptor(grpcreport.Stream(load)))
//	grpcreport.RegisterProbe(server, load)
//	grpcreport.RegisterOOB(server, load, 0)
//
// Law, cost and source are those of package loadreport. A stream counts as one request
// for as long as it lasts; probes and out-of-band streams are not counted.
//
// ORCA's out-of-band service is xds.service.orca.v3.OpenRcaService (proposal A51); it
// speaks with grpc-go's package orca in both directions, which a test holds.
package grpcreport

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/shardd/shardd/loadreport"
)

const (
	// Trailer carries a report: xds.data.orca.v3.OrcaLoadReport in binary form.
	Trailer = "endpoint-load-metrics-bin"
	// CostKey says in a request's metadata what it costs, a whole number; without
	// it, 1.
	CostKey = "shardd-cost"
)

// probeMethod is unary, from google.protobuf.Empty to google.protobuf.Empty; the
// report is in the trailer, as with every answer.
const (
	probeService = "shardd.loadreport.v1.LoadReport"
	probeMethod  = "/" + probeService + "/Probe"
)

// Unary counts unary requests, and puts a report into the trailer of each answer.
func Unary(s *loadreport.Server) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		if info.FullMethod == probeMethod {
			return handler(ctx, req)
		}
		r, finished := s.Begin(cost(ctx)), false
		defer func() { r.Done(!finished || failed(err)) }()
		resp, err = handler(ctx, req)
		finished = true
		_ = grpc.SetTrailer(ctx, metadata.Pairs(Trailer, string(r.Report().Marshal()))) // fails outside of a server only
		return resp, err
	}
}

// Stream counts streams, and puts a report into the trailer at the end of each.
func Stream(s *loadreport.Server) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		if info.FullMethod == oobMethod {
			return handler(srv, stream)
		}
		r, finished := s.Begin(cost(stream.Context())), false
		defer func() { r.Done(!finished || failed(err)) }()
		err = handler(srv, stream)
		finished = true
		stream.SetTrailer(metadata.Pairs(Trailer, string(r.Report().Marshal())))
		return err
	}
}

func cost(ctx context.Context) int64 {
	if v := metadata.ValueFromIncomingContext(ctx, CostKey); len(v) > 0 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil {
			return n
		}
	}
	return 1
}

// failed reports whether an error is the server's: those that a caller causes, by
// what it asks for or by going away, are not.
func failed(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.Canceled, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.OutOfRange, codes.Aborted:
		return false
	}
	return true
}

// FromTrailer returns the report in the trailer of an answer (grpc.Trailer). ok is
// false if there is none or it cannot be read.
func FromTrailer(md metadata.MD) (r loadreport.Report, ok bool) {
	v := md.Get(Trailer)
	if len(v) == 0 {
		return loadreport.Report{}, false
	}
	r, err := loadreport.Unmarshal([]byte(v[len(v)-1]))
	return r, err == nil
}

// RegisterProbe lets server answer probes about s; they are not counted.
func RegisterProbe(server grpc.ServiceRegistrar, s *loadreport.Server) {
	server.RegisterService(&grpc.ServiceDesc{ServiceName: probeService, HandlerType: (*any)(nil), Metadata: "shardd/loadreport/v1",
		Methods: []grpc.MethodDesc{{MethodName: "Probe", Handler: answer}}}, s)
}

// answer answers a probe; gRPC's registry asks for this signature.
func answer(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // context-as-argument: the signature is gRPC's
	in := new(emptypb.Empty)
	if err := dec(in); err != nil {
		return nil, err
	}
	handler := func(ctx context.Context, _ any) (any, error) {
		s, ok := srv.(*loadreport.Server)
		if !ok {
			return nil, status.Error(codes.Internal, "grpcreport: not a load server")
		}
		return &emptypb.Empty{}, grpc.SetTrailer(ctx, metadata.Pairs(Trailer, string(s.Report().Marshal())))
	}
	if interceptor == nil {
		return handler(ctx, in)
	}
	return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: probeMethod}, handler)
}

// Probe asks the server at the other end of conn for its report. Errors: gRPC's, and
// loadreport.ErrReport.
func Probe(ctx context.Context, conn grpc.ClientConnInterface, opts ...grpc.CallOption) (loadreport.Report, error) {
	var trailer metadata.MD
	err := conn.Invoke(ctx, probeMethod, &emptypb.Empty{}, &emptypb.Empty{}, append(opts, grpc.Trailer(&trailer))...)
	if err != nil {
		return loadreport.Report{}, err
	}
	r, ok := FromTrailer(trailer)
	if !ok {
		return loadreport.Report{}, loadreport.ErrReport
	}
	return r, nil
}
