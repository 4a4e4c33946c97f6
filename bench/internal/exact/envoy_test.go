package exact

import (
	"fmt"
	"testing"
	"time"

	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/topology"
)

// BenchmarkEnvoyMaglev measures Envoy's own claim for its Maglev table of 65,537
// against its ring of 256K entries (load balancers page: build 10 times, selection 5
// times as fast), with both of its mappings as package compat has them.
func BenchmarkEnvoyMaglev(b *testing.B) {
	hs := hashes(1 << 16)
	for _, n := range []int{100, 1000} {
		nodes := make([]topology.Node, n)
		for i := range nodes {
			nodes[i] = topology.Node{ID: fmt.Sprintf("host-%d", i), Addr: fmt.Sprintf("10.0.%d.%d:11211", i/256, i%256), Weight: 1}
		}
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			b.ReportAllocs()
			const never = time.Hour
			build, pick := [2]time.Duration{never, never}, [2]time.Duration{never, never} // the least of all
			for b.Loop() {
				for k, mode := range []topology.Foreign{
					{Mode: topology.ModeEnvoyRing, MinRingSize: 1 << 18, MaxRingSize: 1 << 23}, {Mode: topology.ModeEnvoyMaglev, TableSize: 65537},
				} {
					start := time.Now()
					m, err := compat.New(mode, nodes)
					if err != nil {
						b.Fatal(err)
					}
					build[k] = min(build[k], time.Since(start))
					start = time.Now()
					for _, h := range hs {
						sink += m.Locate(h)
					}
					pick[k] = min(pick[k], time.Since(start))
				}
			}
			b.ReportMetric(float64(build[0])/float64(build[1]), "x-build")
			b.ReportMetric(float64(pick[0])/float64(pick[1]), "x-pick")
		})
	}
}

var sink int
