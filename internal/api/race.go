package api

import (
	"context"
	"errors"
	"time"

	"github.com/shardd/shardd/membership"
)

// rivalAfter is how long a server may take over a read before the next one is
// asked, too: what hangs then costs a moment and not the whole timeout. (Hedged
// requests: Dean and Barroso, The Tail at Scale, CACM 2013.)
const rivalAfter = 500 * time.Millisecond

// attempt is what came of asking one server.
type attempt struct {
	server int
	a      *answer
	err    error
}

// race makes a read on the server that answered last, and on one more whenever one
// fails or has not answered for a moment; the first answer counts. What was asked
// besides has ended when it returns.
func (c *Client) race(ctx context.Context, r request) (*answer, error) {
	results := make(chan attempt, len(c.servers))
	cancels := make(map[int]context.CancelFunc, len(c.servers)) // of those that have not answered
	asked, first := 0, int(c.last.Load())
	next := func() {
		n := (first + asked) % len(c.servers)
		asked++
		asking, cancel := context.WithCancel(ctx)
		cancels[n] = cancel
		go func() {
			a, err := c.ask(asking, c.servers[n], r)
			results <- attempt{n, a, err}
		}()
	}
	defer func() {
		for _, cancel := range cancels {
			cancel()
		}
		for range cancels {
			if late := <-results; late.a != nil {
				late.a.close()
			}
		}
	}()
	next()
	rival := time.NewTicker(rivalAfter)
	defer rival.Stop()
	var failed []error
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-rival.C:
			if asked < len(c.servers) {
				next()
			}
			continue
		case got := <-results:
			cancel := cancels[got.server]
			delete(cancels, got.server)
			if got.err == nil {
				c.answered(got.server)
				return got.a.then(cancel), nil
			}
			cancel()
			failed = append(failed, got.err)
			if !errors.Is(got.err, membership.ErrUnreachable) || asked == len(c.servers) && len(cancels) == 0 {
				return nil, joined(failed)
			}
			if asked < len(c.servers) {
				next()
			}
		}
	}
}

// answered notes which server answered.
func (c *Client) answered(server int) {
	c.last.Store(int64(server))
	c.known.Store(true)
}

// then lets cancel follow the end of the answer.
func (a *answer) then(cancel context.CancelFunc) *answer {
	end := a.cancel
	a.cancel = func() { end(); cancel() }
	return a
}
