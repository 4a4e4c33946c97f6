package filesource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Option configures a Source.
type Option func(*Source)

// WithInterval sets the time between two looks at the file; 0 or less = 1 s.
// A change is noticed within it.
func WithInterval(d time.Duration) Option {
	return func(s *Source) {
		if d > 0 {
			s.interval = d
		}
	}
}

// WithTrustedWriter says that whoever writes the file writes versions of one
// line only, so that a version further on than the next one of the same epoch is
// delivered, though the file cannot prove that it descends from what the client
// holds. By default it is not, and the client stays where it is. Use it where
// the file may skip versions and has one writer whose store is never cloned.
func WithTrustedWriter() Option { return func(s *Source) { s.trusted = true } }

// WithLogger sets the logger. The default, and nil, is to log nothing: problems
// reach the client by sdk.Report, which logs them.
func WithLogger(l hclog.Logger) Option { return func(s *Source) { s.logger = l } }

// Source is a sdk.Source that follows one file. Make one with New. It is safe
// for concurrent use.
type Source struct {
	path     string
	interval time.Duration
	trusted  bool
	logger   hclog.Logger
}

var _ sdk.Source = (*Source)(nil)

// New returns a source for the file at path, which need not exist yet. It does
// no I/O. The error says that path is empty.
func New(path string, opts ...Option) (*Source, error) {
	if path == "" {
		return nil, errors.New("filesource: no path; give that of a saved topology")
	}
	s := &Source{path: path, interval: time.Second}
	for _, opt := range opts {
		opt(s)
	}
	if s.logger == nil {
		s.logger = hclog.NewNullLogger()
	}
	return s, nil
}

// Watch is sdk.Source.Watch. As long as the file holds what the caller holds,
// every look at it confirms that.
func (s *Source) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	w := &watch{source: s, held: have, fn: fn, file: file{path: s.path}}
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		if err := w.look(); err != nil {
			sdk.Report(ctx, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// watch is one Watch.
type watch struct {
	source  *Source
	file    file
	held    topology.Ref
	fn      func(*topology.Topology) error
	current *topology.Topology // what the file held last; nil = nothing good
	problem error              // of current; nil = it was delivered
}

// look looks at the file once. The error is the problem that there is, known to
// the client or not.
func (w *watch) look() error {
	t, err := w.file.look()
	if err != nil {
		w.current = nil
		return fmt.Errorf("filesource: %w; staying on %s", err, w.held)
	}
	if t != nil {
		w.source.logger.Debug("file read", "path", w.file.path, "version", t.Version())
		w.current = t
		w.problem = w.deliver(t)
		return w.reportable()
	}
	if w.problem != nil {
		return w.reportable()
	}
	if w.current != nil {
		return w.fn(nil)
	}
	return nil
}

// reportable returns the problem unless the client told it to us.
func (w *watch) reportable() error {
	var refused *sdk.RefusedError
	if errors.As(w.problem, &refused) {
		return nil
	}
	return w.problem
}

func (w *watch) deliver(t *topology.Topology) error {
	if !w.source.trusted && unproved(w.held, t.Ref()) {
		return fmt.Errorf("filesource: %s holds version %s, and nothing in it proves that it descends from %s: %w; save the versions between, restart the program without its snapshot, or trust the file's writer",
			w.file.path, t.Version(), w.held, sdk.ErrForked)
	}
	err := w.fn(t)
	if err == nil {
		w.held = t.Ref()
	}
	return err
}

// unproved reports whether the client would take next on the source's word: it
// is of the held version's epoch and history and further on than the version
// after it, whose parent the client checks itself.
func unproved(held, next topology.Ref) bool {
	return !held.IsZero() && next.ClusterID == held.ClusterID && next.Version.Epoch == held.Version.Epoch &&
		next.History == held.History && next.Version.Seq > held.Version.Seq+1
}
