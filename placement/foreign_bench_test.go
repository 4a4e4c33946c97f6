package placement

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/topology"
)

// BenchmarkRatioForeign is a lookup under each live foreign mapping, less the
// hash of the key, against one on a native ring of as many nodes with its hash,
// in turn over the same keys: x-ring. N = 100 nodes of weight 1, also 1000.
//
//	go test -run '^$' -bench RatioForeign -benchtime 10x ./placement
func BenchmarkRatioForeign(b *testing.B) {
	keys := floorbench.Keys(200_000)
	for _, f := range foreignModes() {
		if !f.Live() {
			continue
		}
		for _, n := range []int{10, 100, 1000, 10_000} {
			if n == 10_000 && (f.Mode == topology.ModeGoRedisRing || f.Distribution == "map-based" || f.Mode == topology.ModeHAProxy) {
				continue // asks every node; a table of n x n steps
			}
			b.Run(fmt.Sprintf("%s/N=%d", foreignName(f), n), func(b *testing.B) {
				benchForeign(b, first(b, foreignSpec(f), foreignBenchNodes(f, n)), first(b, specOf("ring"), someNodes(n)), keys)
			})
		}
	}
}

func foreignBenchNodes(f topology.Foreign, n int) []topology.Node {
	nodes := someNodes(n)
	for i := range nodes {
		nodes[i].Addr = fmt.Sprintf("10.%d.%d.%d:7200", i>>16, i>>8&255, i&255)
		nodes[i].Weight = f.DefaultWeight()
	}
	return nodes
}

func benchForeign(b *testing.B, foreign, native *Table, keys []string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ratios, full, hashes, rings []float64
	sum := 0
	for b.Loop() {
		t0 := floorbench.ThreadTime()
		for _, k := range keys {
			sum += native.Locate(native.Hash(k))
		}
		t1 := floorbench.ThreadTime()
		for _, k := range keys {
			sum += int(foreign.Hash(k) & 1)
		}
		t2 := floorbench.ThreadTime()
		for _, k := range keys {
			sum += foreign.Locate(foreign.Hash(k))
		}
		t3 := floorbench.ThreadTime()
		each := func(d time.Duration) float64 { return float64(d) / float64(len(keys)) }
		rings, hashes, full = append(rings, each(t1-t0)), append(hashes, each(t2-t1)), append(full, each(t3-t2))
		ratios = append(ratios, (each(t3-t2)-each(t2-t1))/each(t1-t0))
	}
	if sum == 0 {
		b.Fatal("nothing was located")
	}
	median := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
	b.ReportMetric(median(ratios), "x-ring")
	b.ReportMetric(median(full), "ns/key")
	b.ReportMetric(median(hashes), "hash-ns/key")
	b.ReportMetric(median(rings), "ring-ns/key")
	b.ReportMetric(0, "ns/op")
}
