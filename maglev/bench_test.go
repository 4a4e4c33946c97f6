package maglev_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/maglev"
)

// BenchmarkRatioLocate is the published figure:
//
//	go test -run '^$' -bench Ratio -benchtime 10x ./maglev
func BenchmarkRatioLocate(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names := floorbench.Names(n)
			table := mustNew(b, n, mustBuild(b, names, floorbench.Weights(n), maglev.DefaultSize))
			floorbench.Ratio(b, keys, func(keys []string) int {
				sum := 0
				for _, k := range keys {
					sum += len(names[table.Locate(xxhash.Sum64String(k))])
				}
				return sum
			})
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, weights := floorbench.Names(n), floorbench.Weights(n)
			b.ReportAllocs()
			for b.Loop() {
				mustBuild(b, names, weights, maglev.DefaultSize)
			}
		})
	}
}

// BenchmarkUpdate takes one node out and puts it back.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range floorbench.Sizes() {
		names, with := floorbench.Names(n), floorbench.Weights(n)
		without := slices.Clone(with)
		without[n/2] = 0
		full := mustBuild(b, names, with, maglev.DefaultSize)
		less, _ := mustUpdate(b, full, names, without)
		b.Run(fmt.Sprintf("remove/N=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustUpdate(b, full, names, without)
			}
		})
		b.Run(fmt.Sprintf("add/N=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustUpdate(b, less, names, with)
			}
		})
	}
}

func BenchmarkReplicas(b *testing.B) {
	const n = 100
	names := floorbench.Names(n)
	table := mustNew(b, n, mustBuild(b, names, floorbench.Weights(n), maglev.DefaultSize))
	for _, r := range []int{2, 3, 10, n} {
		b.Run(fmt.Sprintf("R=%d", r), func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]int, 0, n)
			for h := uint64(0); b.Loop(); h += 0x9e3779b97f4a7c15 {
				dst = table.AppendReplicas(dst[:0], h, r)
			}
		})
	}
}
