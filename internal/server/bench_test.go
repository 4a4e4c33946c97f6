package server_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"

	"github.com/shardd/shardd/internal/server"
)

// BenchmarkPublishToClient is the way from a declared edit to a client that
// routes by it, over HTTP on loopback, the store in memory: edit, controller,
// placement, watch, decoding, table, swap.
//
//	go test -run '^$' -bench PublishToClient ./internal/server
func BenchmarkPublishToClient(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store := memstore.New()
			r := run(b, server.Config{Directory: store, Elector: store})
			r.put(declared(n))
			c := follow(b, nil, r.addr)
			if err := c.WaitReady(b.Context()); err != nil {
				b.Fatal(err)
			}
			got := make(chan topology.Version, 100)
			defer c.OnChange(func(ch sdk.Change) { got <- ch.To.Version() })()
			last := <-got
			weight := uint32(1)
			for b.Loop() {
				weight ^= 3 // 2, 1, 2, ...
				if _, err := store.Open("cache").Declare(b.Context(), membership.SetWeight("node-000", weight)); err != nil {
					b.Fatal(err)
				}
				for v := <-got; v == last; v = <-got {
				}
				last.Seq++
			}
		})
	}
}

// BenchmarkFanOut is one version's way to many clients: the time until the last
// one has it.
func BenchmarkFanOut(b *testing.B) {
	for _, clients := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			store := memstore.New()
			r := run(b, server.Config{Directory: store, Elector: store, Heartbeat: time.Hour})
			r.put(declared(100))
			done := errors.New("done")
			arrived := make(chan struct{}, clients)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					_ = r.api.Watch(b.Context(), "cache", topology.Ref{}, time.Hour, func(m api.Message) error {
						select {
						case <-stop:
							return done
						default:
						}
						arrived <- struct{}{}
						return nil
					})
				})
			}
			collect := func() {
				for range clients {
					<-arrived
				}
			}
			collect()
			weight := uint32(1)
			for b.Loop() {
				weight ^= 3
				if _, err := store.Open("cache").Declare(b.Context(), membership.SetWeight("node-000", weight)); err != nil {
					b.Fatal(err)
				}
				collect()
			}
			close(stop)
			r.node("last", api.VerbAdd, api.NodeEdit{})
			wg.Wait()
		})
	}
}
