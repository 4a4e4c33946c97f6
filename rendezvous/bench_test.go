package rendezvous_test

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/rendezvous"
)

// keysFor is fewer keys for many nodes, for which every key takes long.
func keysFor(nodes int) []string {
	return floorbench.Keys(min(floorbench.NumKeys, 200_000_000/nodes))
}

// BenchmarkRatioLocate is the exact form with 1 or 5 distinct weights.
func BenchmarkRatioLocate(b *testing.B) {
	for _, distinct := range []int{1, 5} {
		for _, n := range floorbench.Sizes() {
			b.Run(fmt.Sprintf("weights=%d/N=%d", distinct, n), func(b *testing.B) {
				names := floorbench.Names(n)
				t := mustNew(b, names, weights(n, distinct))
				floorbench.Ratio(b, keysFor(n), func(keys []string) int {
					sum := 0
					for _, k := range keys {
						sum += len(names[t.Locate(xxhash.Sum64String(k))])
					}
					return sum
				})
			})
		}
	}
}

func BenchmarkRatioTable(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names := floorbench.Names(n)
			t := mustTable(b, names, weights(n, 1), rendezvous.DefaultSlots)
			floorbench.Ratio(b, keys, func(keys []string) int {
				sum := 0
				for _, k := range keys {
					sum += len(names[t.Locate(xxhash.Sum64String(k))])
				}
				return sum
			})
		})
	}
}

func BenchmarkAppendReplicas(b *testing.B) {
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			t := mustNew(b, floorbench.Names(n), weights(n, 5))
			dst := make([]int, 0, 3)
			h := uint64(1)
			b.ReportAllocs()
			for b.Loop() {
				h = mix(h)
				t.AppendReplicas(dst, h, 3)
			}
		})
	}
}

func BenchmarkNewTable(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, weights := floorbench.Names(n), weights(n, 1)
			b.ReportAllocs()
			for b.Loop() {
				mustTable(b, names, weights, rendezvous.DefaultSlots)
			}
		})
	}
}

// BenchmarkTableUpdate adds one node.
func BenchmarkTableUpdate(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, weights := floorbench.Names(n+1), weights(n+1, 1)
			t := mustTable(b, names[:n], weights[:n], rendezvous.DefaultSlots)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := t.Update(names, weights); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// weights returns n weights, 1 to distinct in turn.
func weights(n, distinct int) []uint32 {
	w := floorbench.Weights(n)
	for i := range w {
		w[i] += uint32(i % distinct)
	}
	return w
}
