package etcdkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// Follow calls fn with a reading of the ranges now, after every change, and
// after every poll, from one goroutine, until ctx ends (it returns ctx.Err())
// or fn returns an error (it returns that). While fn works changes pile up and
// the newest reading comes next: latest wins, and the last one always comes.
//
// The loop is Get at revision R, then Watch from R+1 with a leader required. A
// compacted, cancelled or closed stream leads back to Get, after a pause that
// grows to a second. Behind the stream a poll reads the ranges every
// Options.Poll: if it finds what the stream did not tell, or a revision before
// the one the stream began at (the store went back, and the stream would stay
// silent), everything begins anew on a new stream. A reading that fn has seen
// already means that it was confirmed to be the newest.
//
// problem (nil = none) is told, from the same goroutine, what was overcome:
// unreachable, compacted, silent. A fresh reading follows by itself.
func (c *Client) Follow(ctx context.Context, ranges []Range, problem func(error), fn func(Reading) error) error {
	f := &follower{c: c, ranges: ranges, fn: fn, problem: problem}
	if f.problem == nil {
		f.problem = func(error) {}
	}
	for failures := 0; ; {
		began := time.Now()
		err := f.round(ctx)
		var stop *stopError
		switch {
		case errors.As(err, &stop):
			return stop.err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		c.o.Logger.Debug("reading anew", "key", ranges[0].Key, "error", err)
		f.problem(err)
		if time.Since(began) > 2*time.Second {
			failures = 0
		}
		c.pause(ctx, failures)
		failures++
	}
}

// stopError carries fn's error out of the loop.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

type follower struct {
	c       *Client
	ranges  []Range
	fn      func(Reading) error
	problem func(error)
	last    Reading      // what fn was called with last
	seen    atomic.Int64 // last.Revision, for the polling goroutine
	// doubted: the stream before fell silent, and this one has not told
	// anything yet: it may be on the same member.
	doubted atomic.Bool
}

// doubtedPoll is the most time between readings behind a stream that is doubted.
const doubtedPoll = time.Second

// round reads once and follows one stream until it ends.
func (f *follower) round(ctx context.Context) error {
	r, err := f.get(ctx)
	if err != nil {
		return err
	}
	if err := f.deliver(r); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	events := f.stream(ctx, &wg, r.Revision+1)
	polls := f.poll(ctx, &wg)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-events:
			err = f.event(ctx, e, events)
		case p := <-polls:
			err = f.polled(p)
		}
		if err != nil {
			return err
		}
	}
}

// get gives up sooner than a call does: the loop makes it again, and tells.
func (f *follower) get(ctx context.Context) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, f.c.o.TryTimeout*3/2)
	defer cancel()
	return f.c.Get(ctx, f.ranges...)
}

func (f *follower) deliver(r Reading) error {
	f.last = r
	f.seen.Store(r.Revision)
	if err := f.fn(r); err != nil {
		return &stopError{err}
	}
	return nil
}

// stream watches every range from rev on, all on one stream of its own (the
// client keeps one stream for each set of metadata), for two reasons. A stream
// that a new round opens may end up on another member than the one that fell
// silent. And a client without a socket hands its requests over a channel,
// while etcd's watch server has room for sixteen answers: more watches than that
// on one stream, cancelled at once, wait for each other for ever.
func (f *follower) stream(ctx context.Context, wg *sync.WaitGroup, rev int64) <-chan clientv3.WatchResponse {
	id := strconv.FormatUint(rand.Uint64(), 36) // of no other follower that shares the etcd client
	ctx = metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(ctx), "shardd-stream", id)
	events := make(chan clientv3.WatchResponse)
	for _, r := range f.ranges {
		opts := []clientv3.OpOption{clientv3.WithRev(rev)}
		if r.Prefix {
			opts = append(opts, clientv3.WithPrefix())
		}
		wg.Go(func() {
			// Watch blocks until the server has answered, so here.
			forward(ctx, f.c.watcher.Watch(ctx, r.Key, opts...), events)
		})
	}
	return events
}

// forward passes on what a watch tells, at last that it has ended. Of events
// that nobody has taken yet only the newest stays: latest wins.
func forward(ctx context.Context, watch clientv3.WatchChan, events chan<- clientv3.WatchResponse) {
	var newest clientv3.WatchResponse
	var out chan<- clientv3.WatchResponse // nil while there is nothing to pass on
	for watch != nil || out != nil {
		select {
		case resp, open := <-watch:
			if !open {
				resp = clientv3.WatchResponse{Canceled: true}
			}
			if watchError(resp) != nil {
				watch = nil // what comes after makes no difference
			} else if len(resp.Events) == 0 {
				continue
			}
			newest, out = resp, events
		case out <- newest:
			out = nil
		case <-ctx.Done():
			return
		}
	}
}

// event handles e and whatever came with it.
func (f *follower) event(ctx context.Context, e clientv3.WatchResponse, more <-chan clientv3.WatchResponse) error {
	newest := f.last
	changed := false
	for {
		if err := watchError(e); err != nil {
			return err
		}
		if len(e.Events) > 0 {
			f.doubted.Store(false)
			changed = true
			newest = f.apply(newest, e)
		}
		select {
		case e = <-more:
			continue
		default:
		}
		break
	}
	switch {
	case !changed:
		return nil
	case f.single():
		return f.deliver(newest)
	}
	r, err := f.get(ctx)
	if err != nil {
		return err
	}
	return f.deliver(r)
}

func watchError(e clientv3.WatchResponse) error {
	switch {
	case e.CompactRevision > 0:
		return fmt.Errorf("etcdkv: watch: compacted at revision %d: %w", e.CompactRevision, e.Err())
	case e.Err() != nil:
		return fmt.Errorf("etcdkv: watch: %w", e.Err())
	case e.Canceled:
		return fmt.Errorf("%w: watch: stream closed", ErrUnreachable)
	}
	return nil
}

// single reports whether an event is a whole reading: of several keys, one
// event may be half of a transaction.
func (f *follower) single() bool { return len(f.ranges) == 1 && !f.ranges[0].Prefix }

func (f *follower) apply(r Reading, e clientv3.WatchResponse) Reading {
	if !f.single() {
		return r
	}
	last := e.Events[len(e.Events)-1]
	r = Reading{Revision: last.Kv.ModRevision, Items: [][]Item{nil}}
	if last.Type == clientv3.EventTypePut {
		r.Items[0] = []Item{{Key: string(last.Kv.Key), Value: last.Kv.Value, ModRevision: last.Kv.ModRevision, CreateRevision: last.Kv.CreateRevision}}
	}
	return r
}

type polled struct {
	r     Reading
	err   error
	after int64 // the newest revision that was known when the poll began
}

func (f *follower) poll(ctx context.Context, wg *sync.WaitGroup) <-chan polled {
	polls := make(chan polled)
	wg.Go(func() {
		for {
			every := f.c.o.Poll
			if f.doubted.Load() {
				every = min(every, doubtedPoll)
			}
			t := time.NewTimer(time.Duration(float64(every) * (0.9 + 0.2*f.c.o.Rand())))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
			after := f.seen.Load()
			r, err := f.get(ctx)
			select {
			case polls <- polled{r, err, after}:
			case <-ctx.Done():
				return
			}
		}
	})
	return polls
}

// polled compares a poll with what the stream has told. A linearizable reading
// cannot be of a revision before one that was known when it began, unless the
// store itself went back: the stream then stays silent until the old revision
// is reached again, and tells of another history after that.
func (f *follower) polled(p polled) error {
	switch {
	case p.err != nil: // the stream may live on; if it does not, it says so
		f.problem(p.err)
		return nil
	case p.r.Revision < p.after:
		return fmt.Errorf("etcdkv: poll: revision %d is before %d, which was there already: the store went back", p.r.Revision, p.after)
	case p.r.Revision < f.last.Revision: // read before the last event came
		return nil
	case same(p.r, f.last):
		return f.deliver(p.r)
	}
	if err := f.deliver(p.r); err != nil {
		return err
	}
	f.doubted.Store(true)
	return errors.New("etcdkv: poll: found a change that the watch did not tell")
}

func same(a, b Reading) bool {
	for i := range a.Items {
		if len(a.Items[i]) != len(b.Items[i]) {
			return false
		}
		for j, item := range a.Items[i] {
			if other := b.Items[i][j]; item.Key != other.Key || item.ModRevision != other.ModRevision || !bytes.Equal(item.Value, other.Value) {
				return false
			}
		}
	}
	return true
}
