package grpcreport

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/shardd/shardd/loadreport"
)

// ORCA's out-of-band service: one stream of xds.data.orca.v3.OrcaLoadReport for one
// xds.service.orca.v3.OrcaLoadReportRequest. Both messages travel as the fields that
// google.protobuf.Empty does not know, so that nobody has to link the generated code
// of xds; the wire is the same.
const (
	oobService    = "xds.service.orca.v3.OpenRcaService"
	oobStreamName = "StreamCoreMetrics"
	oobMethod     = "/" + oobService + "/" + oobStreamName
	fieldInterval = 1 // of the request: google.protobuf.Duration
)

// DefaultMinInterval is the shortest time between two reports of a stream unless
// RegisterOOB is told another.
const DefaultMinInterval = time.Second

// maxInterval is the longest interval that is taken from a request: a day.
const maxInterval = 24 * time.Hour

// RegisterOOB lets server stream reports about s to whoever asks for them by ORCA's
// out-of-band service, one at once and then one each interval that the client asks for,
// but not more often than each least; 0 means DefaultMinInterval. (grpc-go's own
// service, package orca, does not go below 30 s.) The streams are not counted as
// requests. Each costs a goroutine and a timer.
//
// A stream lasts until its client goes away, or the server stops: GracefulStop tells
// clients to go, and those of package sdk/grpclb do.
func RegisterOOB(server grpc.ServiceRegistrar, s *loadreport.Server, least time.Duration) {
	if least <= 0 {
		least = DefaultMinInterval
	}
	server.RegisterService(&grpc.ServiceDesc{ServiceName: oobService, HandlerType: (*any)(nil), Metadata: "xds/service/orca/v3/orca.proto",
		Streams: []grpc.StreamDesc{{StreamName: oobStreamName, ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return oob(s, stream, least) }}}}, s)
}

// oob sends reports until the client goes.
func oob(s *loadreport.Server, stream grpc.ServerStream, least time.Duration) error {
	in := new(emptypb.Empty)
	if err := stream.RecvMsg(in); err != nil {
		return err
	}
	ticker := time.NewTicker(max(least, interval(in.ProtoReflect().GetUnknown())))
	defer ticker.Stop()
	for {
		out := new(emptypb.Empty)
		out.ProtoReflect().SetUnknown(s.Report().Marshal())
		if err := stream.SendMsg(out); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-ticker.C:
		}
	}
}

// interval reads the interval from an OrcaLoadReportRequest, 0 if it has none or
// cannot be read: then the server's own is used, as ORCA has it.
func interval(b []byte) time.Duration {
	d := new(durationpb.Duration)
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0
		}
		size := protowire.ConsumeFieldValue(field, kind, b[n:])
		if size < 0 {
			return 0
		}
		if field == fieldInterval && kind == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b[n:])
			if proto.Unmarshal(v, d) != nil {
				return 0
			}
		}
		b = b[n+size:]
	}
	return min(max(0, d.AsDuration()), maxInterval)
}

// request returns an OrcaLoadReportRequest for reports each d.
func request(d time.Duration) []byte {
	v, err := proto.Marshal(durationpb.New(d))
	if err != nil { // a Duration can always be written
		return nil
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, fieldInterval, protowire.BytesType), v)
}

// Watch asks the server at the other end of conn for a report each interval, by ORCA's
// out-of-band service, and calls fn with each, one at a time, until ctx ends or the
// stream does. The server may report less often. An interval of 0 leaves it to the
// server. Reports that cannot be read are left out.
//
// Errors: gRPC's, io.EOF if the server ended the stream; Unimplemented means that it has
// no such service, and that asking again is of no use. There is no other end: the error
// is never nil.
func Watch(ctx context.Context, conn grpc.ClientConnInterface, every time.Duration, fn func(loadreport.Report), opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{StreamName: oobStreamName, ServerStreams: true}, oobMethod, opts...)
	if err != nil {
		return err
	}
	in := new(emptypb.Empty)
	if every > 0 {
		in.ProtoReflect().SetUnknown(request(min(every, maxInterval)))
	}
	// A failure to send is told by RecvMsg, with its status.
	_ = stream.SendMsg(in)
	_ = stream.CloseSend()
	for {
		out := new(emptypb.Empty)
		if err := stream.RecvMsg(out); err != nil {
			return err
		}
		if r, err := loadreport.Unmarshal(out.ProtoReflect().GetUnknown()); err == nil {
			fn(r)
		}
	}
}
