package rendezvous_test

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/rendezvous"
)

// keysFor keeps the benchmark of n nodes below a second a pair.
func keysFor(n int) []string { return floorbench.Keys(min(floorbench.NumKeys, 200_000_000/n)) }

func BenchmarkRatioLocate(b *testing.B) {
	for _, weighted := range []int{1, 5} {
		for _, n := range floorbench.Sizes() {
			b.Run(fmt.Sprintf("weights=%d/N=%d", weighted, n), func(b *testing.B) {
				names, weights := floorbench.Names(n), floorbench.Weights(n)
				for i := range weights {
					weights[i] += uint32(i % weighted)
				}
				t, err := rendezvous.New(names, weights)
				if err != nil {
					b.Fatal(err)
				}
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
