package slots_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/slots"
)

// The published figures are those of
//
//	go test -run '^$' -bench Ratio -benchtime 10x ./slots

func BenchmarkRatioLocate(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, table := floorbench.Names(n), benchTable(b, n, 1)
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

// BenchmarkRatioRedis is Locate behind Redis Cluster's key hash.
func BenchmarkRatioRedis(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, n := range floorbench.Sizes() {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, table := floorbench.Names(n), benchTable(b, n, 1)
			floorbench.Ratio(b, keys, func(keys []string) int {
				sum := 0
				for _, k := range keys {
					sum += len(names[table.Locate(keyhash.Spread(keyhash.Slot(k)))])
				}
				return sum
			})
		})
	}
}

func benchTable(b *testing.B, n, replicas int) *slots.Table {
	b.Helper()
	return mustNew(b, n, mustBuild(b, floorbench.Names(n), floorbench.Weights(n), nil, slots.DefaultCount, replicas))
}

func BenchmarkBuild(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		for _, n := range floorbench.Sizes() {
			b.Run(fmt.Sprintf("R=%d/N=%d", replicas, n), func(b *testing.B) {
				names, weights := floorbench.Names(n), floorbench.Weights(n)
				b.ReportAllocs()
				for b.Loop() {
					mustBuild(b, names, weights, nil, slots.DefaultCount, replicas)
				}
			})
		}
	}
}

// BenchmarkUpdate takes one node out.
func BenchmarkUpdate(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		for _, n := range floorbench.Sizes() {
			b.Run(fmt.Sprintf("R=%d/N=%d", replicas, n), func(b *testing.B) {
				names, weights, zones := floorbench.Names(n), floorbench.Weights(n), cycle(n, 5)
				full := mustBuild(b, names, weights, zones, slots.DefaultCount, replicas)
				less := slices.Clone(weights)
				less[n/2] = 0
				b.ReportAllocs()
				for b.Loop() {
					mustUpdate(b, full, names, less, zones, slots.DefaultCount, replicas)
				}
			})
		}
	}
}

// BenchmarkThirtyCases are the published changes with replicas and zones.
func BenchmarkThirtyCases(b *testing.B) {
	for _, c := range thirtyCases() {
		b.Run(c.String(), func(b *testing.B) {
			ids, before := c.before()
			zones := c.zoneList(len(ids))
			prev := mustBuild(b, ids, before, zones, slots.DefaultCount, c.replicas)
			for b.Loop() {
				mustUpdate(b, prev, ids, c.after(), zones, slots.DefaultCount, c.replicas)
			}
		})
	}
}

func BenchmarkReplicas(b *testing.B) {
	table := benchTable(b, 100, 3)
	for _, r := range []int{1, 3, 10, 100} {
		b.Run(fmt.Sprintf("R=%d", r), func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]int, 0, 100)
			for h := uint64(0); b.Loop(); h += 0x9e3779b97f4a7c15 {
				dst = table.AppendReplicas(dst[:0], h, r)
			}
		})
	}
}
