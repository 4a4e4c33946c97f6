package sdk_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// BenchmarkAcquireCores compares the throughput of two cores that do nothing but
// acquire and end requests on one client, with that of one core: x-one-core is the
// ratio of the best rounds, with an exact total and one that lags by 32.
//
// The two goroutines have a processor each and begin and end a round together, or
// the round does not count: so it measures sharing, also on a machine that does
// other work.
//
//	go test -run '^$' -bench Cores -benchtime 1000x ./sdk
func BenchmarkAcquireCores(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("wants two processors")
	}
	for _, every := range []int{1, 32} {
		b.Run(fmt.Sprintf("bounded/every=%d", every), func(b *testing.B) {
			c, keys := benchClient(b, topology.Spec{Algorithm: topology.Ring, BoundedLoad: 1.25}, 100, sdk.WithBoundedLoad(sdk.BoundedLoad{TotalEvery: every}))
			ctx := b.Context()
			benchCores(b, func(at int) {
				for _, k := range keys[at : at+2000] {
					t, _ := c.Acquire(ctx, k, 1)
					t.Done(sdk.Success)
				}
			})
		})
	}
	b.Run("route", func(b *testing.B) {
		c, keys := benchClient(b, topology.Spec{Algorithm: topology.Ring}, 100)
		benchCores(b, func(at int) {
			for _, k := range keys[at : at+2000] {
				r, _ := c.Route(k)
				if r.ID() == "" {
					panic("no node")
				}
			}
		})
	})
}

func benchCores(b *testing.B, loop func(at int)) {
	var alone []time.Duration
	for r := range 3 * b.N {
		start := time.Now()
		loop(r * 2000 % 60_000)
		alone = append(alone, time.Since(start))
	}
	b.ResetTimer()
	both := floorbench.Duel(b.N, func(core, round int) { loop((round*2000 + core*30_000) % 60_000) })
	b.ReportMetric(0, "ns/op")
	if len(both) == 0 {
		return
	}
	slices.Sort(alone)
	slices.Sort(both)
	b.ReportMetric(float64(len(both)), "rounds")
	b.ReportMetric(2*float64(alone[len(alone)/20])/float64(both[len(both)/20]), "x-one-core")
	b.ReportMetric(float64(alone[len(alone)/20])/2000, "ns/pick")
}
