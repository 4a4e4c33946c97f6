package grpclb

import (
	"cmp"
	"context"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/sdk/loadfeed"
)

// Config configures an LB. The zero value takes the defaults.
type Config struct {
	// Key returns the key of a call, "" if it has none and any node will do; nil
	// means that of Metadata.
	Key func(ctx context.Context, method string) string
	// Metadata is the name in a call's metadata whose value is its key; "" means
	// "shardd-key".
	Metadata string
	// Cost returns what the call adds to a node's load, at least 1; nil means 1.
	Cost func(ctx context.Context, method string) int64
	// Next lets calls go on to the next node in order while their node is not
	// connected: for servers of which any can answer.
	Next bool

	// Conns is how many connections are kept to each node; a call goes to the one
	// that has the fewest under way. 0 means 1, which carries as many calls at a
	// time as the server allows streams (HTTP/2's MAX_CONCURRENT_STREAMS).
	Conns int
	// MaxConns is the most connections to one node, with those that only finish
	// what they carried when they were replaced: while there are as many, no other
	// is replaced. 0 means 4 more than Conns; it is at least one more.
	MaxConns int
	// MaxAge is the age at which a connection is replaced, up to a tenth earlier by
	// chance so that not all are at once; 0 means 30 min, below 0 never.
	MaxAge time.Duration
	// MaxRequests is how many calls and streams a connection is given before it is
	// replaced, up to a tenth fewer by chance; 0 means no limit. It is no hard
	// limit: calls go on by the old connection until the new one is ready.
	MaxRequests int
	// WarmTimeout is how long calls wait for a node to be connected, at first and
	// after its connection was lost; from then until it is, the node counts as one
	// that cannot be connected to. 0 means 1 s.
	WarmTimeout time.Duration
	// Grace is how long calls may go on at a node that left, or at the address that
	// it had before; then their connections are closed. 0 means 30 s, below 0 until
	// they end.
	Grace time.Duration
	// Dial opens a connection; nil means net.Dialer. It stands in for
	// grpc.WithContextDialer: with that, Grace cannot close what goes on, because
	// the connection is not known here.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Feed is given the reports in trailers (package grpcreport), and asked which
	// nodes to probe; nil means that reports go to bounded load alone.
	Feed *loadfeed.Feed
	// ProbeTimeout bounds a probe; 0 means 1 s.
	ProbeTimeout time.Duration
	// OutOfBand lets each node stream its report to Feed so often, by ORCA's
	// out-of-band service (grpcreport.RegisterOOB, or grpc-go's package orca), which
	// tells of nodes that get no calls, too. Servers may send less often. 0 means no
	// stream; nodes without the service are not asked again until they are
	// connected anew.
	OutOfBand time.Duration

	// Converge says in each call by which version it was routed, and takes the newer
	// one from a server that answers that it is stale; unary calls are then sent
	// once more. nil means not.
	Converge *converge.Source
}

// spareConns is how many more connections than Conns there may be.
const spareConns = 4

func (c Config) withDefaults() Config {
	c.Metadata = cmp.Or(c.Metadata, "shardd-key")
	name := c.Metadata
	if c.Key == nil {
		c.Key = func(ctx context.Context, _ string) string {
			md, _ := metadata.FromOutgoingContext(ctx)
			if v := md.Get(name); len(v) > 0 {
				return v[0]
			}
			return ""
		}
	}
	if c.Cost == nil {
		c.Cost = func(context.Context, string) int64 { return 1 }
	}
	c.Conns = max(1, c.Conns)
	c.MaxConns = max(cmp.Or(max(0, c.MaxConns), c.Conns+spareConns), c.Conns+1)
	c.MaxAge = cmp.Or(c.MaxAge, 30*time.Minute)
	c.MaxRequests = max(0, c.MaxRequests)
	c.WarmTimeout = cmp.Or(max(0, c.WarmTimeout), time.Second)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, time.Second)
	if c.Dial == nil {
		c.Dial = dial
	}
	return c
}

// dial connects to host:port, or to unix:path.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", strings.TrimPrefix(path, "//")
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}
