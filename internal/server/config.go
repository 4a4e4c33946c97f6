package server

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
)

// Config configures a Server. Directory must be there; the zero value of
// everything else is its default.
type Config struct {
	// Directory holds the clusters.
	Directory membership.Directory
	// Elector elects the process that publishes; nil = this process only
	// reads and edits, and publishes nothing.
	Elector membership.Elector
	// ID names this process in elections and messages; "" = host name and
	// process id.
	ID string

	// Admission says when nodes that register by themselves become active,
	// down and gone; its zero value = its defaults.
	Admission membership.AdmissionConfig

	// DataDir is where the newest version of every cluster that was served is
	// kept, fsynced before it goes out, so that a restarted process notices a
	// store that was restored meanwhile; "" = in memory only.
	DataDir string

	// Addr is what Run listens on; "" = api.DefaultAddr.
	Addr string
	// AllowInsecure lets the server listen on other addresses than those of
	// this machine's loopback. There is no authentication yet: everybody who
	// reaches the address can change every cluster.
	AllowInsecure bool
	// AllowedHosts are host names, besides localhost and this machine's own,
	// under which the server may be addressed. Names that are missing here
	// are refused, because a web page can make any name of its own point to
	// this address. IP addresses need no entry.
	AllowedHosts []string

	// Heartbeat is the time between two messages of a quiet watch; 0 = 1 s.
	// Clients give a watch up after about three of them.
	Heartbeat time.Duration
	// EditWait is how long an edit waits for the version that contains it
	// unless the request says otherwise; 0 = 5 s. MaxEditWait bounds what a
	// request may ask for; 0 = 60 s.
	EditWait    time.Duration
	MaxEditWait time.Duration
	// StoreTimeout bounds each call to the store; 0 = 5 s.
	StoreTimeout time.Duration
	// WriteTimeout is how long a client may take to accept one message of a
	// watch before it is dropped; 0 = 10 s.
	WriteTimeout time.Duration
	// ShutdownTimeout bounds the time for requests in flight when Run ends;
	// 0 = 5 s.
	ShutdownTimeout time.Duration
	// MaxWatches bounds the open watches; more are answered 503 with
	// Retry-After; 0 = 50,000.
	MaxWatches int

	// Registry takes the metrics; nil = a registry of the server's own.
	Registry *prometheus.Registry
	// Logger; nil = none.
	Logger hclog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Directory == nil {
		return c, fmt.Errorf("server: no directory; give the store that holds the clusters")
	}
	if c.ID == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "shardd"
		}
		c.ID = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if c.Addr == "" {
		c.Addr = api.DefaultAddr
	}
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&c.Heartbeat, time.Second}, {&c.EditWait, 5 * time.Second}, {&c.MaxEditWait, time.Minute},
		{&c.StoreTimeout, 5 * time.Second}, {&c.WriteTimeout, 10 * time.Second}, {&c.ShutdownTimeout, 5 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if c.MaxWatches == 0 {
		c.MaxWatches = 50_000
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

// listen opens addr, unless it is reachable from elsewhere and insecure is
// false. The address is judged before anything is opened.
func listen(addr string, insecure bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("server: listen address %q: %w; want HOST:PORT", addr, err)
	}
	if !insecure && !isLoopback(host) {
		return nil, insecureError(addr)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if err := checkListener(ln, insecure); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// checkListener refuses a TCP listener that is reachable from elsewhere.
func checkListener(ln net.Listener, insecure bool) error {
	if a, ok := ln.Addr().(*net.TCPAddr); ok && !insecure && !a.IP.IsLoopback() {
		return insecureError(a.String())
	}
	return nil
}

func insecureError(addr string) error {
	return fmt.Errorf("server: %s is reachable from other machines, and there is no authentication; listen on 127.0.0.1, or allow it with --insecure if the network is trusted", addr)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
