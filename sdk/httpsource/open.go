package httpsource

import (
	"context"
	"errors"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/sdk"
)

// rivalAfter is how long a server may take to accept a watch before the next one
// is asked, too. A server that hangs then costs half a second and not the
// timeout. (Hedged requests: Dean and Barroso, The Tail at Scale, CACM 2013;
// Happy Eyeballs, RFC 8305, does the same with addresses.)
const rivalAfter = 500 * time.Millisecond

// mostAsked bounds the servers that are asked at one time, so that a fleet of
// slow servers is not asked by everybody at once.
const mostAsked = 2

// attempt is what came of asking one server.
type attempt struct {
	server int
	stream *api.Stream
	err    error
}

// race is one try to open a watch, on one server or two at a time.
type race struct {
	f       *follower
	turn    *turns
	asked   []int
	cancels map[int]context.CancelFunc // of those that have not answered
	results chan attempt
}

// open returns the stream of the first server that accepts, which then has the
// turn. If none does, the turn is at the last one that failed, with its error;
// the others' are reported. What was asked beside the winner has ended when open
// returns.
func (f *follower) open(ctx context.Context, turn *turns) (*api.Stream, error) {
	r := race{f: f, turn: turn, cancels: make(map[int]context.CancelFunc), results: make(chan attempt, len(f.source.servers))}
	defer r.end()
	r.ask(ctx, turn.server())
	rival := time.NewTicker(rivalAfter)
	defer rival.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case a := <-r.results:
			delete(r.cancels, a.server) // its context lasts as long as ctx
			if a.err == nil || len(r.cancels) == 0 {
				turn.took(a.server)
				return a.stream, a.err
			}
			turn.failed(a.server, retryAfter(a.err), time.Now())
			f.report(ctx, inSDKTerms(a.err))
		case <-rival.C:
			if n, ok := turn.rival(r.asked, time.Now()); ok && len(r.cancels) < mostAsked {
				r.ask(ctx, n)
			}
		}
	}
}

func (r *race) ask(ctx context.Context, n int) {
	f := r.f
	r.asked = append(r.asked, n)
	ctx, r.cancels[n] = context.WithCancel(ctx)
	srv, held, deltas := f.source.servers[n], f.held, f.deltas()
	go func() {
		stream, err := srv.client.OpenWatch(ctx, f.source.cluster, held, deltas)
		r.results <- attempt{n, stream, err}
	}()
}

// end gives up what has not answered and waits for it.
func (r *race) end() {
	for _, cancel := range r.cancels {
		cancel()
	}
	for range r.cancels {
		if a := <-r.results; a.stream != nil {
			a.stream.Close()
		}
	}
}

// report tells the client of a problem, unless it knows.
func (f *follower) report(ctx context.Context, err error) {
	if !errors.Is(err, errRefused) {
		sdk.Report(ctx, err)
	}
}
