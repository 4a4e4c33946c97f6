package httpsource

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Option configures a Source.
type Option func(*options)

type options struct {
	transport http.RoundTripper
	logger    hclog.Logger
	timeout   time.Duration
	silence   time.Duration
	chance    func() float64
}

// WithTransport sets what carries the requests, for TLS or tests. The default
// is a transport of the source's own that gives up connecting after 2 s and
// keeps no idle connection after Watch has ended.
func WithTransport(t http.RoundTripper) Option { return func(o *options) { o.transport = t } }

// WithLogger sets the logger. The default, and nil, is to log nothing: problems
// reach the client by sdk.Report, which logs them.
func WithLogger(l hclog.Logger) Option { return func(o *options) { o.logger = l } }

// WithTimeout sets how long a server has to accept a watch or to send a table;
// 0 = 3 s. A server that says nothing for half a second has a rival: the next one
// is asked, too, and the first that accepts the watch is followed.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithSilence sets how long a stream may say nothing until it is given up; 0 =
// three of the server's heartbeats, which are 1 s apart by default. Less than
// one heartbeat would give up every stream.
func WithSilence(d time.Duration) Option {
	return func(o *options) { o.silence = d }
}

// WithChance sets the source of random numbers in [0, 1) for jitter and the
// first server, for tests; the default is math/rand/v2.
func WithChance(f func() float64) Option { return func(o *options) { o.chance = f } }

// Source is a sdk.Source that watches one cluster on one of several servers.
// Make one with New. It is safe for concurrent use.
type Source struct {
	cluster string
	servers []*server
	opts    options
}

var _ sdk.Source = (*Source)(nil)

// server is one shardd with its own client, so that each request goes where the
// stream is.
type server struct {
	name   string
	client *api.Client
}

// New returns a source for the named cluster on servers, which are base URLs
// such as "http://10.0.0.5:7420" or just "10.0.0.5:7420". It does no I/O. The
// error names an illegal cluster name, an address that is none, or says that
// there are no servers.
func New(cluster string, servers []string, opts ...Option) (*Source, error) {
	o := options{timeout: 3 * time.Second, chance: rand.Float64}
	for _, opt := range opts {
		opt(&o)
	}
	if o.logger == nil {
		o.logger = hclog.NewNullLogger()
	}
	if o.transport == nil {
		o.transport = api.NewTransport()
	}
	if err := topology.ValidateClusterName(cluster); err != nil {
		return nil, fmt.Errorf("httpsource: %w", err)
	}
	if len(servers) == 0 {
		return nil, errors.New("httpsource: no servers; give the address of at least one shardd")
	}
	s := &Source{cluster: cluster, opts: o}
	for _, addr := range servers {
		c, err := api.NewClient(api.ClientConfig{Servers: []string{addr}, Timeout: o.timeout, Transport: o.transport, Logger: o.logger})
		if err != nil {
			return nil, fmt.Errorf("httpsource: %w", err)
		}
		s.servers = append(s.servers, &server{addr, c})
	}
	return s, nil
}

// Watch is sdk.Source.Watch.
func (s *Source) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	defer s.closeIdle()
	f := follower{source: s, held: have, fn: fn}
	turn := newTurns(len(s.servers), s.opts.chance)
	for {
		f.delivered = false
		err := f.follow(ctx, turn)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.opts.logger.Debug("watch ended", "server", s.servers[turn.server()].name, "error", err)
		f.report(ctx, err)
		now := time.Now()
		worked := f.delivered && now.Sub(f.opened) >= mostPause && !errors.Is(err, api.ErrSilent)
		if err := sleep(ctx, turn.ended(worked, retryAfter(err), now)); err != nil {
			return err
		}
	}
}

func (s *Source) closeIdle() {
	for _, srv := range s.servers {
		srv.client.Close()
	}
}

func retryAfter(err error) time.Duration {
	var e *api.Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
