package ring_test

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/ring"
)

func BenchmarkRatioLocate(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names := floorbench.Names(n)
			r := mustNew(b, names, floorbench.Weights(n), 160)
			floorbench.Ratio(b, keys, func(keys []string) int {
				sum := 0
				for _, k := range keys {
					sum += len(names[r.Locate(xxhash.Sum64String(k))])
				}
				return sum
			})
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, weights := floorbench.Names(n), floorbench.Weights(n)
			b.ReportAllocs()
			for b.Loop() {
				mustNew(b, names, weights, 160)
			}
		})
	}
}

// BenchmarkUpdate adds one node.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, weights := floorbench.Names(n+1), floorbench.Weights(n+1)
			r := mustNew(b, names[:n], weights[:n], 160)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Update(names, weights); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func mustNew(t testing.TB, ids []string, weights []uint32, vnodes uint32) *ring.Ring {
	t.Helper()
	r, err := ring.New(ids, weights, vnodes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func BenchmarkRatioBatch(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names := floorbench.Names(n)
			r := mustNew(b, names, floorbench.Weights(n), 160)
			var hs [64]uint64
			var dst [64]int
			floorbench.Ratio(b, keys, func(keys []string) int {
				sum := 0
				for len(keys) > 0 {
					n := min(len(keys), len(hs))
					for i, k := range keys[:n] {
						hs[i] = xxhash.Sum64String(k)
					}
					r.LocateBatch(dst[:n], hs[:n])
					for _, o := range dst[:n] {
						sum += len(names[o])
					}
					keys = keys[n:]
				}
				return sum
			})
		})
	}
}
