package etcdsource_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/etcdstore"
	"github.com/shardd/shardd/membership/storetest"
	"github.com/shardd/shardd/sdk/etcdsource"
	"github.com/shardd/shardd/topology"
)

// BenchmarkPublishToCallback measures the way of a version from the call of
// Publish to the source's callback: embedded etcd with its log synced to disk,
// the source connected through its socket. ms-p50 and ms-max are over the
// versions of the run; ns/op has the placement of the next version in it.
func BenchmarkPublishToCallback(b *testing.B) {
	for _, algorithm := range []topology.Algorithm{topology.Ring, topology.Maglev} {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/N=%d", algorithm, n), func(b *testing.B) { benchPublish(b, algorithm, n) })
		}
	}
}

func benchPublish(b *testing.B, algorithm topology.Algorithm, n int) {
	server := start(b)
	dir, err := etcdstore.New(server.Client(), etcdstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	d := topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: algorithm}}
	for i := range n {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("node-%05d", i), Addr: fmt.Sprintf("10.%d.%d.%d:11211", i>>16, i>>8&255, i&255), Weight: 1})
	}
	if _, err := dir.Create(b.Context(), d, "", ""); err != nil {
		b.Fatal(err)
	}
	store := dir.Open("c")
	l, err := dir.Campaign(b.Context(), "c", "bench")
	if err != nil {
		b.Fatal(err)
	}
	source, err := etcdsource.New(etcdsource.Config{Cluster: "c", Endpoints: []string{server.Endpoint()}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	arrived, ended := make(chan time.Time, 1), make(chan error, 1)
	go func() {
		ended <- source.Watch(ctx, topology.Ref{}, func(t *topology.Topology) error {
			if t != nil {
				arrived <- time.Now()
			}
			return nil
		})
	}()
	publish := func() time.Duration {
		state, err := store.Load(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		p := storetest.Next(b, state)
		began := time.Now()
		if err := store.Publish(b.Context(), l, p); err != nil {
			b.Fatal(err)
		}
		return (<-arrived).Sub(began)
	}
	publish()
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		weight := uint32(len(took)%2 + 2)
		if _, err := store.Declare(b.Context(), membership.SetWeight("node-00000", weight)); err != nil {
			b.Fatal(err)
		}
		took = append(took, publish())
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-max")
	cancel()
	<-ended
}
