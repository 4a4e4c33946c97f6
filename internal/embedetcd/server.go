package embedetcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/shardd/shardd/internal/etcdkv"
)

// Config of a member. Dir is required; the other fields' zero values are the
// production defaults.
type Config struct {
	// Dir holds the member's data. It is made, and narrowed to 0700.
	Dir string
	// Dev elects within 0.1 s, where etcd's own ticks take a second. On a
	// machine that stalls for longer, such a member loses its leadership for
	// a moment, so it is for development and tests.
	Dev bool
	// Listen is the loopback address for clients, "127.0.0.1:0" (any free
	// port) by default. Another host is refused.
	Listen string
	// Retention is how much history is kept; default 5 minutes. Watchers that
	// were away for longer read anew.
	Retention time.Duration
	// QuotaBytes is the size of the database above which etcd refuses writes;
	// default 2 GiB.
	QuotaBytes int64
	// Logger gets etcd's messages, under "etcd"; nil = none.
	Logger hclog.Logger
}

// Server is a running member. Close it.
type Server struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	lock   *fileutil.LockedFile
	close  func() error
}

// segmentBytes is the size of a segment of the write-ahead log, of which etcd
// takes two at once. It has to hold a few requests of 1.5 MiB.
const segmentBytes = 4 << 20

// narrowSegments sets a variable of etcd's own that every member of the process
// shares, so once.
var narrowSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = segmentBytes })

// ErrInUse means that another member, of this process or another one, has the
// directory. Stop it, or take another directory.
var ErrInUse = errors.New("embedetcd: data directory is in use")

// Start starts a member and waits until it leads. It gives up when ctx ends.
// Errors name the directory or address at fault; ErrInUse.
func Start(ctx context.Context, c Config) (*Server, error) {
	cfg, err := c.embed()
	if err != nil {
		return nil, err
	}
	if err := privateDir(c.Dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, cfg, lock)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("embedetcd: start in %s: %w", c.Dir, err)
	}
	return s, nil
}

// lockDir takes the directory for this member. etcd's own lock would be waited
// for in silence, for as long as the other one runs. The system frees it when
// the process ends, however it ends.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("%w: %s; stop the process that has it, or name another directory", ErrInUse, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("embedetcd: data directory: %w", err)
	}
	return lock, nil
}

func start(ctx context.Context, cfg *embed.Config, lock *fileutil.LockedFile) (*Server, error) {
	narrowSegments()
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		s := &Server{etcd: e, client: v3client.New(e.Server), lock: lock}
		s.close = sync.OnceValue(s.stop) // etcd's own Close panics the second time
		return s, nil
	case err = <-e.Err():
	case <-e.Server.StopNotify():
		err = errors.New("the member stopped")
	case <-ctx.Done():
		err = ctx.Err()
	}
	e.Close()
	return nil, err
}

// Client returns a client that calls the member without a socket. Its Close
// ends it for all users; Server.Close does so too.
func (s *Server) Client() *clientv3.Client { return s.client }

// Endpoint returns the URL at which the member listens for clients.
func (s *Server) Endpoint() string { return "http://" + s.etcd.Clients[0].Addr().String() }

// Done is closed when the member has stopped, by Close or because it failed.
func (s *Server) Done() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Close stops the member and its client and waits for both. Clients that are
// connected to Endpoint are given some 5 s to leave (etcd's own time): close
// them first. Further calls return what the first did.
func (s *Server) Close() error { return s.close() }

func (s *Server) stop() error {
	err := s.client.Close()
	s.etcd.Close()
	s.lock.Close()
	if err != nil && !errors.Is(err, context.Canceled) { // a client without a connection always says so
		return fmt.Errorf("embedetcd: close: %w", err)
	}
	return nil
}

func (c Config) embed() (*embed.Config, error) {
	if c.Dir == "" {
		return nil, errors.New("embedetcd: no data directory; name one")
	}
	listen := c.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	clients, err := loopback(listen)
	if err != nil {
		return nil, err
	}
	peers := url.URL{Scheme: "http", Host: "127.0.0.1:0"} // nobody: one member
	cfg := embed.NewConfig()
	cfg.Name = "shardd"
	cfg.Dir = filepath.Join(c.Dir, "etcd")
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.CORS = map[string]struct{}{clients.String(): {}} // empty would allow all
	cfg.HostWhitelist = map[string]struct{}{"127.0.0.1": {}, "localhost": {}, "[::1]": {}, "::1": {}}
	cfg.EnableGRPCGateway = false
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = c.retention().String()
	cfg.QuotaBackendBytes = c.QuotaBytes
	if c.Dev {
		cfg.TickMs, cfg.ElectionMs = 10, 100
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdkv.ZapLogger(c.logger(), harmless))
	return cfg, nil
}

func (c Config) retention() time.Duration {
	if c.Retention <= 0 {
		return 5 * time.Minute
	}
	return c.Retention
}

func (c Config) logger() hclog.Logger {
	if c.Logger == nil {
		return nil
	}
	return c.Logger.Named("etcd")
}

func loopback(listen string) (url.URL, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return url.URL{}, fmt.Errorf("embedetcd: listen address %q: %w", listen, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return url.URL{}, fmt.Errorf("embedetcd: listen address %q is not of the loopback interface, and the embedded etcd has no users and no TLS; use 127.0.0.1, or an etcd cluster of your own", listen)
	}
	return url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}, nil
}

func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("embedetcd: data directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("embedetcd: data directory: %w", err)
	}
	return nil
}
