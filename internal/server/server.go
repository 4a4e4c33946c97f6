package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server serves the HTTP API. Make one with New, then call Run or Serve once.
type Server struct {
	cfg      Config
	logger   hclog.Logger
	clusters *clusters
	metrics  *metrics
	guard    guard
	routes   *http.ServeMux
	store    lister // asked by readyz

	open    atomic.Int64    // watches
	running context.Context // ends with Serve: watches say good-bye
	stop    context.CancelFunc
	leading context.Context // a moment later, if edits wait for their versions
	resign  context.CancelFunc
	waiting context.Context // later still: edits stop waiting
	giveUp  context.CancelFunc
	edits   flights
	endHubs context.CancelFunc
	served  sync.Once
}

// New returns a server. It does no I/O. The error says what of cfg is missing,
// or that its Registry has metrics of these names already.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, endHubs := context.WithCancel(context.Background())
	s := &Server{cfg: cfg, logger: cfg.Logger, guard: newGuard(cfg), endHubs: endHubs,
		store: lister{directory: cfg.Directory, timeout: time.Second, every: time.Second}}
	s.running, s.stop = context.WithCancel(context.Background())
	s.leading, s.resign = context.WithCancel(context.Background())
	s.waiting, s.giveUp = context.WithCancel(context.Background())
	s.clusters = &clusters{directory: cfg.Directory, lister: lister{directory: cfg.Directory, timeout: cfg.StoreTimeout, every: 100 * time.Millisecond}, elector: cfg.Elector, id: cfg.ID, dir: cfg.DataDir, admission: cfg.Admission, timeout: cfg.StoreTimeout, logger: s.logger,
		ctx: ctx, leading: s.leading, hubs: make(map[string]*hub), read: make(chan struct{})}
	if s.metrics, err = newMetrics(cfg.Registry, s.clusters); err != nil {
		s.end()
		return nil, fmt.Errorf("server: metrics: %w", err)
	}
	s.routes = s.newRoutes(promhttp.HandlerFor(cfg.Registry, promhttp.HandlerOpts{}))
	return s, nil
}

// Run listens on Config.Addr and serves until ctx ends. An address that other
// machines can reach is refused unless Config.AllowInsecure is set. See Serve.
func (s *Server) Run(ctx context.Context) error {
	ln, err := listen(s.cfg.Addr, s.cfg.AllowInsecure)
	if err != nil {
		return err
	}
	return s.Serve(ctx, ln)
}

// Serve serves on ln, which it closes, until ctx ends, and runs the controllers
// meanwhile. Then watches are told to go elsewhere, leaderships are handed over, at
// once or, if edits wait for their versions, after 250 ms at most, and requests in
// flight get Config.ShutdownTimeout; edits among them are answered after 2 s whether
// a version contains them or not. It returns nil, or
// why it could not serve. A server serves once.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	err := errors.New("server: a server serves only once; make another one")
	s.served.Do(func() { err = s.serve(ctx, ln) })
	return err
}

func (s *Server) serve(ctx context.Context, ln net.Listener) error {
	if err := checkListener(ln, s.cfg.AllowInsecure); err != nil {
		ln.Close()
		return err
	}
	watching, stopWatching := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.clusters.run(watching) })
	defer running.Wait()
	defer s.end()
	defer stopWatching()

	// A watch sets its own deadline with each message.
	web := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		WriteTimeout:   bodyTimeout + s.cfg.MaxEditWait + time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: s.logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})}
	failed := make(chan error, 1)
	running.Go(func() { failed <- web.Serve(ln) })
	s.logger.Info("listening", "address", ln.Addr().String(), "insecure", s.cfg.AllowInsecure)
	select {
	case err := <-failed:
		s.end()
		web.Close()
		return fmt.Errorf("server: %w", err)
	case <-ctx.Done():
	}
	s.stop()
	running.Go(func() {
		s.edits.wait(min(editDrain, s.cfg.ShutdownTimeout/2))
		s.resign()
	})
	defer time.AfterFunc(min(editAnswer, s.cfg.ShutdownTimeout/2), s.giveUp).Stop()
	s.shutDown(web)
	s.logger.Info("stopped")
	return nil
}

// end ends everything that runs besides requests.
func (s *Server) end() {
	s.stop()
	s.resign()
	s.giveUp()
	s.endHubs()
}

func (s *Server) shutDown(web *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		s.logger.Warn("requests in flight were cut off", "error", err)
		web.Close()
	}
}
