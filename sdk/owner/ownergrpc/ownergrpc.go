// Package ownergrpc puts owner.Guard before gRPC handlers: calls for keys that the node
// does not own fail with FailedPrecondition, with the newer topology in the trailer if
// the client's is stale (grpclb.Config.Converge takes it and sends unary calls once
// more), and with Unavailable where the key is on its way here. Law and cost are those
// of package owner.
package ownergrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/sdk/owner"
)

const (
	// PresentKey says in a call's metadata by which topology it was routed.
	PresentKey = "shardd-topology"
	// AnswerKey carries a newer topology in the trailer. Answers above MaxAnswer
	// bytes are left out: clients limit the size of headers.
	AnswerKey = "shardd-topology-bin"
	// MaxAnswer is the most bytes of an answer.
	MaxAnswer = 4 << 10
)

// Unary guards unary calls. key returns the key of a call; req is its message.
func Unary(g *owner.Guard, key func(ctx context.Context, req any) string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		v := g.Judge(ctx, key(ctx, req), presented(ctx))
		if v.Err != nil {
			if small(v.Answer) {
				_ = grpc.SetTrailer(ctx, metadata.Pairs(AnswerKey, string(v.Answer))) // fails outside of a server only
			}
			return nil, refusal(v)
		}
		return handler(owner.WithClaim(ctx, v.Claim), req)
	}
}

// Stream guards streams as they begin. key returns the key of a stream, from its
// metadata.
func Stream(g *owner.Guard, key func(ctx context.Context) string) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		v := g.Judge(stream.Context(), key(stream.Context()), presented(stream.Context()))
		if v.Err != nil {
			if small(v.Answer) {
				stream.SetTrailer(metadata.Pairs(AnswerKey, string(v.Answer)))
			}
			return refusal(v)
		}
		return handler(srv, claimed{stream, owner.WithClaim(stream.Context(), v.Claim)})
	}
}

// claimed is a stream whose context has the claim.
type claimed struct {
	grpc.ServerStream
	ctx context.Context
}

func (c claimed) Context() context.Context { return c.ctx }

func small(answer []byte) bool { return len(answer) > 0 && len(answer) <= MaxAnswer }

func presented(ctx context.Context) string {
	if v := metadata.ValueFromIncomingContext(ctx, PresentKey); len(v) > 0 {
		return v[0]
	}
	return ""
}

func refusal(v owner.Verdict) error {
	if v.Retry {
		return status.Error(codes.Unavailable, v.Err.Error())
	}
	return status.Error(codes.FailedPrecondition, v.Err.Error())
}
