package grpclb

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/loadreport/grpcreport"
)

// The pause before a stream that broke is asked for again, doubled each time.
const (
	minPause = 100 * time.Millisecond
	maxPause = 30 * time.Second
)

// reports is the out-of-band stream of one connection, as gRPC's producers are: it
// ends with the connection.
type reports struct {
	lb   *LB
	node string
}

// Build begins the stream.
func (r *reports) Build(conn any) (balancer.Producer, func()) {
	ctx, cancel := context.WithCancel(r.lb.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if cc, ok := conn.(grpc.ClientConnInterface); ok {
			r.watch(ctx, cc)
		}
	}()
	return nil, func() {
		cancel()
		<-ended
	}
}

func (r *reports) watch(ctx context.Context, conn grpc.ClientConnInterface) {
	feed, every := r.lb.cfg.Feed, r.lb.cfg.OutOfBand
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := grpcreport.Watch(ctx, conn, every, func(rep loadreport.Report) {
			pause = minPause
			feed.Take(r.node, rep, true) // unasked, from all alike: as a probe
		})
		if ctx.Err() != nil || status.Code(err) == codes.Unimplemented {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}
