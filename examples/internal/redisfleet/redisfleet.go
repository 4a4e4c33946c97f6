// Package redisfleet gives the Redis examples what a program has around it: Redis
// servers, a control plane that has some of them as nodes, and an sdk.Client that
// follows it.
package redisfleet

import (
	"context"
	"fmt"
	"time"

	"github.com/shardd/shardd/examples/internal/devserver"
	"github.com/shardd/shardd/internal/realserver"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/topology"
)

// Fleet is the servers redis-1, redis-2 and so on, and who knows of them.
type Fleet struct {
	Nodes  []devserver.Node // all that run
	Plane  devserver.Plane
	Client *sdk.Client
}

// Start starts so many servers and declares the first use of them. stop ends all.
func Start(ctx context.Context, n, use int) (f *Fleet, stop func(), err error) {
	servers, stopServers, err := realserver.StartN(ctx, realserver.Redis(), n)
	if err != nil {
		return nil, nil, err
	}
	url, stopShardd, err := devserver.Start(ctx)
	if err != nil {
		stopServers()
		return nil, nil, err
	}
	f = &Fleet{Plane: devserver.Plane{URL: url, Cluster: "cache"}}
	for i, s := range servers {
		f.Nodes = append(f.Nodes, devserver.Node{ID: fmt.Sprintf("redis-%d", i+1), Addr: s.Addr})
	}
	if err := f.follow(ctx, use); err != nil {
		stopShardd()
		stopServers()
		return nil, nil, err
	}
	return f, func() { f.Client.Close(); stopShardd(); stopServers() }, nil
}

// follow declares the cluster and makes the client.
func (f *Fleet) follow(ctx context.Context, use int) error {
	if _, err := f.Plane.Declare(ctx, f.Nodes[:use]); err != nil {
		return err
	}
	source, err := httpsource.New(f.Plane.Cluster, []string{f.Plane.URL})
	if err != nil {
		return err
	}
	if f.Client, err = sdk.New(source); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := f.Client.WaitReady(ready); err != nil {
		f.Client.Close()
		return err
	}
	return nil
}

// Wait waits until lookups go by a topology for which ok is true.
func (f *Fleet) Wait(ctx context.Context, ok func(*topology.Topology) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	arrived := make(chan struct{}, 1)
	end := f.Client.OnChange(func(c sdk.Change) {
		if ok(c.To) {
			select {
			case arrived <- struct{}{}:
			default:
			}
		}
	})
	defer end()
	select {
	case <-arrived:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the topology waited for has not come: %w", ctx.Err())
	}
}

// Version is what Wait waits for after an edit.
func Version(v string) func(*topology.Topology) bool {
	return func(t *topology.Topology) bool { return t.Version().String() == v }
}
