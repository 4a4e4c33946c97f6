package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/shardd/shardd/topology"
)

// ErrSilent says that a watch brought nothing for several of the intervals that
// its server announced. The connection is given up; watch another server.
var ErrSilent = errors.New("api: watch is silent")

// firstSilence is how long a watch may say nothing before the server has
// announced its interval: a server says something at once.
const firstSilence = 3 * time.Second

// silenceAfter returns how long a watch may say nothing whose server announced
// this interval: two heartbeats may get lost in a pause, three are a dead server.
func silenceAfter(interval time.Duration) time.Duration { return max(3*interval, time.Second) }

// Watch opens a watch on the first server that accepts it and calls fn with
// every message until ctx ends (ctx.Err()), fn returns an error (that error), or
// the stream ends or falls silent (membership.ErrUnreachable, ErrSilent). after
// is what the caller holds; zero = nothing. If the server cannot prove that its
// newest version descends from it: ErrForked, ErrOlder, ErrCluster. A message
// of type end becomes its error.
//
// silence is how long the stream may say nothing; 0 = three of the intervals
// that the server announces, at least 1 s, and 3 s before the first.
func (c *Client) Watch(ctx context.Context, cluster string, after topology.Ref, silence time.Duration, fn func(Message) error) error {
	return c.WatchDeltas(ctx, cluster, after, DeltasNone, silence, fn)
}

// WatchDeltas is Watch for a client that takes delta messages.
func (c *Client) WatchDeltas(ctx context.Context, cluster string, after topology.Ref, deltas Deltas, silence time.Duration, fn func(Message) error) error {
	stream, err := c.OpenWatch(ctx, cluster, after, deltas)
	if err != nil {
		return err
	}
	return stream.Follow(ctx, silence, fn)
}

// Stream is a watch that a server has accepted. Follow or Close it, once.
type Stream struct{ answer *answer }

// OpenWatch is the first half of Watch: it returns when a server has accepted
// the watch, or with the reason why none has. ctx is for the whole watch.
func (c *Client) OpenWatch(ctx context.Context, cluster string, after topology.Ref, deltas Deltas) (*Stream, error) {
	query := url.Values{}
	if deltas != DeltasNone {
		query.Set("deltas", string(deltas))
	}
	if !after.IsZero() {
		query.Set("after", after.Version.String())
		query.Set("digest", after.Digest.String())
		query.Set("id", after.ClusterID.String())
	}
	a, err := c.do(ctx, request{method: http.MethodGet, path: Path(cluster, "watch"), query: query, stream: true,
		header: http.Header{"Accept": {TypeLines}}})
	if err != nil {
		return nil, err
	}
	return &Stream{a}, nil
}

// Follow is the second half of Watch; ctx is the same.
func (s *Stream) Follow(ctx context.Context, silence time.Duration, fn func(Message) error) error {
	defer s.Close()
	err := s.answer.follow(silence, fn)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Close gives the watch up.
func (s *Stream) Close() {
	s.answer.cancel()
	s.answer.Body.Close()
}

// follow reads messages until one of the ends that Watch names.
func (a *answer) follow(silence time.Duration, fn func(Message) error) error {
	limit := silence
	if silence == 0 {
		limit = firstSilence
	}
	timer := time.AfterFunc(limit, a.cancel)
	defer timer.Stop()
	lines := bufio.NewReaderSize(a.Body, 64<<10)
	for {
		line, err := readLine(lines, MaxAnswer)
		if err != nil {
			return a.ended(err, !timer.Stop(), limit)
		}
		// While fn works the server is not what is silent.
		if !timer.Stop() {
			return a.ended(io.ErrUnexpectedEOF, true, limit)
		}
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("api: watch of %s sent what is no message: %w: %w", a.Request.URL.Host, topology.ErrCorrupt, err)
		}
		if m.Type == MessageEnd {
			return m.end()
		}
		if m.IntervalMS > 0 && silence == 0 {
			limit = silenceAfter(min(time.Duration(m.IntervalMS)*time.Millisecond, time.Hour))
		}
		if err := fn(m); err != nil {
			return err
		}
		timer.Reset(limit)
	}
}

func (m Message) end() error {
	if m.Error == nil {
		return Errorf(CodeStopping, "", "the server ended the watch")
	}
	return m.Error
}

func (a *answer) ended(err error, expired bool, limit time.Duration) error {
	host := a.Request.URL.Host
	if expired {
		return &unreachable{host, fmt.Errorf("%w for %s", ErrSilent, limit)}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &unreachable{host, fmt.Errorf("watch broke off: %w", err)}
}

// readLine returns the next line without its end, at most limit bytes of it.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, fmt.Errorf("line is longer than %d bytes", limit)
		}
		if err == nil && line == nil {
			return part, nil // valid until the next read: it is decoded before
		}
		line = append(line, part...)
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
