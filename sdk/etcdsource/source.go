// Package etcdsource brings topologies straight from etcd to an sdk.Client, with
// no shardd server between: for processes that may reach etcd and are few enough
// (each costs etcd one watch and one small reading every Config.Poll).
//
// # Law
//
// A topology is delivered only if it is whole, has the digest that the head
// names, and continues what the caller holds: its epoch is higher, or the
// store's chain has the held digest at the held version. Whatever else the keys
// hold, or while etcd is away, nothing is delivered, and the problem is reported
// (sdk.Report). A missing key is not an empty cluster: a cluster without nodes
// is a version that says so.
//
// A store that went back behind what the caller holds, as after a restored backup,
// is told to the servers, too: by the key evidence/DIGEST under the cluster, which a
// shardd checks and removes. It stops publication then, until the epoch is raised. That
// takes write access to CLUSTER/evidence/; without it the log alone says so, besides
// sdk.Report.
//
// # Cost
//
// A change costs one event of some hundred bytes and one reading of what is new:
// the topology, and a table if it changed. Versions that follow faster than the
// caller takes them are skipped, never the last.
//
// # Source
//
// Get-then-Watch: internal/etcdkv. The law of sources: package sdk.
package etcdsource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Config says where a cluster's topologies are.
type Config struct {
	// Cluster is the cluster's name; required.
	Cluster string
	// Endpoints are the etcd members' client URLs or host:port, in any
	// order; one that hangs does no harm. Each Watch has a client of its own.
	Endpoints []string
	// TLS is used for https endpoints; nil = no TLS.
	TLS *tls.Config
	// Username and Password log in, if both are set.
	Username, Password string
	// Client is used in place of Endpoints, if it is set. The caller closes it.
	Client *clientv3.Client
	// Prefix is where clusters lie in etcd, "/shardd" by default.
	Prefix string
	// Poll is the time between readings behind the watch, which also confirm
	// that what is held is the newest; default 5 s.
	Poll time.Duration
	// Name is who presents what is held to the servers, if the store went back
	// behind it; "" = the host's name.
	Name string
	// Logger; nil = none.
	Logger hclog.Logger
}

// Source is an sdk.Source over etcd. Safe for concurrent use.
type Source struct {
	c    Config
	keys etcdkv.Keys
}

var _ sdk.Source = (*Source)(nil)

// New checks the configuration; it does no I/O.
func New(c Config) (*Source, error) {
	keys, err := etcdkv.NewKeys(c.Prefix, c.Cluster)
	if err != nil {
		return nil, fmt.Errorf("etcdsource: %w", err)
	}
	if c.Client == nil && len(c.Endpoints) == 0 {
		return nil, errors.New("etcdsource: neither a client nor endpoints; name the etcd members")
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Name == "" {
		c.Name, _ = os.Hostname()
	}
	c.Logger = c.Logger.Named("etcdsource").With("cluster", c.Cluster)
	return &Source{c: c, keys: keys}, nil
}

// Watch delivers topologies until ctx ends; see sdk.Source.
func (s *Source) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	client, done, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	kv := etcdkv.New(client, etcdkv.Options{Poll: s.c.Poll, Logger: s.c.Logger})
	w := &watch{s: s, kv: kv, have: have, fn: fn}
	problem := func(err error) { w.report(ctx, err) }
	return kv.Follow(ctx, []etcdkv.Range{{Key: s.keys.Head()}, {Key: s.keys.Overlay()}}, problem, func(r etcdkv.Reading) error {
		err := w.reading(ctx, r.First(0))
		w.health(ctx, r.First(1))
		return err
	})
}

// client dials, again and again while a log-in finds no server.
func (s *Source) client(ctx context.Context) (*clientv3.Client, func(), error) {
	if s.c.Client != nil {
		return s.c.Client, func() {}, nil
	}
	for {
		client, err := etcdkv.Dial(etcdkv.Config{Endpoints: s.c.Endpoints, TLS: s.c.TLS, Username: s.c.Username, Password: s.c.Password, Logger: s.c.Logger})
		if err == nil {
			return client, func() { _ = client.Close() }, nil
		}
		if !errors.Is(err, etcdkv.ErrUnreachable) {
			return nil, nil, fmt.Errorf("etcdsource: %w", err)
		}
		sdk.Report(ctx, fmt.Errorf("etcdsource: %w", err))
		t := time.NewTimer(time.Second/2 + rand.N(time.Second/2))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, nil, ctx.Err()
		}
	}
}
