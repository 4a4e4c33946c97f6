package sdk_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// BenchmarkRoute is one lookup by all algorithms; a ring of 100 nodes of 160
// points is the case that the documents speak of.
//
//	go test -run '^$' -bench Route$ ./sdk
func BenchmarkRoute(b *testing.B) {
	for _, algorithm := range topology.Algorithms() {
		for _, n := range floorbench.Sizes() {
			b.Run(fmt.Sprintf("%s/%d", algorithm, n), func(b *testing.B) {
				c, keys := benchClient(b, topology.Spec{Algorithm: algorithm}, n)
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					r, err := c.Route(keys[i&(len(keys)-1)])
					if err != nil || r.Addr() == "" {
						b.Fatal(err)
					}
					i++
				}
			})
		}
	}
}

// BenchmarkRouteRatio compares a Route with the hash and the lookup in it, in
// turn, over the same 65536 keys: x-locate is the median of the pairs' ratios,
// which hardly depends on what else the machine does.
//
//	go test -run '^$' -bench RouteRatio -benchtime 200x ./sdk
func BenchmarkRouteRatio(b *testing.B) {
	for _, algorithm := range topology.Algorithms() {
		b.Run(string(algorithm), func(b *testing.B) {
			c, keys := benchClient(b, topology.Spec{Algorithm: algorithm}, 100)
			table, err := placement.New(c.Topology())
			if err != nil {
				b.Fatal(err)
			}
			var ratios, routed []float64
			sum := 0
			for b.Loop() {
				t0 := time.Now()
				for _, k := range keys {
					sum += table.Locate(table.Hash(k))
				}
				t1 := time.Now()
				for _, k := range keys {
					r, _ := c.Route(k)
					sum += int(r.Hash() & 1)
				}
				t2 := time.Now()
				ratios = append(ratios, float64(t2.Sub(t1))/float64(t1.Sub(t0)))
				routed = append(routed, float64(t2.Sub(t1))/float64(len(keys)))
			}
			slices.Sort(ratios)
			slices.Sort(routed)
			b.ReportMetric(ratios[len(ratios)/2], "x-locate")
			b.ReportMetric(routed[len(routed)/2], "ns/key")
			b.ReportMetric(0, "ns/op")
			if sum == 0 {
				b.Fatal("nothing was located")
			}
		})
	}
}

// BenchmarkRouteParallel is Route on all processors at once.
func BenchmarkRouteParallel(b *testing.B) {
	c, keys := benchClient(b, topology.Spec{Algorithm: topology.Ring}, 100)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := c.Route(keys[i&(len(keys)-1)]); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkRouteN is a lookup of three nodes.
func BenchmarkRouteN(b *testing.B) {
	for _, algorithm := range topology.Algorithms() {
		b.Run(string(algorithm), func(b *testing.B) {
			c, keys := benchClient(b, topology.Spec{Algorithm: algorithm, Replicas: 3}, 100)
			dst := make([]sdk.Route, 0, 3)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, err = c.RouteN(dst[:0], keys[i&(len(keys)-1)], 3); err != nil || len(dst) != 3 {
					b.Fatal(dst, err)
				}
				i++
			}
		})
	}
}

// BenchmarkTake is the way of a version from the source to the lookups: checks,
// table, mapping digest, swap.
func BenchmarkTake(b *testing.B) {
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newLine(b)
			all := nodes(n)
			_, f := start(b)
			spec := topology.Spec{Algorithm: topology.Ring}
			mustGive(b, f, l.publish(spec, all...))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				all[0].Weight ^= 3 // 1, 2, 1, ...
				next := l.publish(spec, all...)
				b.StartTimer()
				mustGive(b, f, next)
			}
		})
	}
}

func benchClient(b *testing.B, spec topology.Spec, n int, opts ...sdk.Option) (*sdk.Client, []string) {
	b.Helper()
	l := newLine(b)
	c, f := start(b, opts...)
	mustGive(b, f, l.publish(spec, nodes(n)...))
	return c, floorbench.Keys(1 << 16)
}
