package jump_test

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/jump"
)

// The published figures are those of
//
//	go test -run '^$' -bench Ratio -benchtime 10x ./jump

func BenchmarkRatioClassic(b *testing.B) { ratioLocate(b, jump.Classic) }

func BenchmarkRatioBack(b *testing.B) { ratioLocate(b, jump.Back) }

func ratioLocate(b *testing.B, v jump.Variant) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names := floorbench.Names(n)
			table := mustNew(b, n, mustBuild(b, names, floorbench.Weights(n), 1), v)
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

// BenchmarkRatioBatch hashes and locates four keys at once.
func BenchmarkRatioBatch(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names := floorbench.Names(n)
			table := mustNew(b, n, mustBuild(b, names, floorbench.Weights(n), 1), jump.Classic)
			floorbench.Ratio(b, keys, func(keys []string) int {
				sum := 0
				var hs [4]uint64
				var owners [4]int
				for ; len(keys) >= 4; keys = keys[4:] {
					for i, k := range keys[:4] {
						hs[i] = xxhash.Sum64String(k)
					}
					table.LocateBatch(owners[:], hs[:])
					for _, o := range owners {
						sum += len(names[o])
					}
				}
				return sum
			})
		})
	}
}

// BenchmarkHoles locates with a part of the buckets empty.
func BenchmarkHoles(b *testing.B) {
	for _, v := range []jump.Variant{jump.Classic, jump.Back} {
		for _, empty := range []int{0, 10, 50, 90} {
			b.Run(fmt.Sprintf("variant=%d/empty=%d%%", v, empty), func(b *testing.B) {
				names, weights := floorbench.Names(1000), floorbench.Weights(1000)
				full := mustBuild(b, names, weights, 1)
				for i := range weights {
					if i*7919%1000 < empty*10 {
						weights[i] = 0
					}
				}
				holed, _ := mustUpdate(b, full, names, weights, 1)
				table := mustNew(b, 1000, holed, v)
				sum := 0
				for h := uint64(0); b.Loop(); h += 0x9e3779b97f4a7c15 {
					sum += table.Locate(h)
				}
				_ = sum
			})
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, weights := floorbench.Names(n), floorbench.Weights(n)
			full := mustBuild(b, names, weights, 16)
			weights[n/2] = 0
			b.ReportAllocs()
			for b.Loop() {
				mustUpdate(b, full, names, weights, 16)
			}
		})
	}
}

func BenchmarkReplicas(b *testing.B) {
	names, weights := floorbench.Names(100), floorbench.Weights(100)
	for _, v := range []jump.Variant{jump.Classic, jump.Back} {
		table := mustNew(b, 100, mustBuild(b, names, weights, 1), v)
		for _, r := range []int{2, 3, 100} {
			b.Run(fmt.Sprintf("variant=%d/R=%d", v, r), func(b *testing.B) {
				b.ReportAllocs()
				dst := make([]int, 0, 100)
				for h := uint64(0); b.Loop(); h += 0x9e3779b97f4a7c15 {
					dst = table.AppendReplicas(dst[:0], h, r)
				}
			})
		}
	}
}
