package keyhash_test

import (
	"math/bits"
	"testing"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/keyhash"
)

// BenchmarkRatioSum is hash, multiply-high, table and name with each kind:
// what a lookup in a slot table costs with it.
func BenchmarkRatioSum(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	names, table := slotTable()
	for _, f := range allFuncs(b) {
		b.Run(f.String(), func(b *testing.B) {
			floorbench.Ratio(b, keys, func(keys []string) int {
				sum := 0
				for _, k := range keys {
					slot, _ := bits.Mul64(f.Sum(k), keyhash.Slots)
					sum += len(names[table[slot]])
				}
				return sum
			})
		})
	}
}

// BenchmarkRatioSlot is the same through Slot.
func BenchmarkRatioSlot(b *testing.B) {
	names, table := slotTable()
	floorbench.Ratio(b, floorbench.Keys(floorbench.NumKeys), func(keys []string) int {
		sum := 0
		for _, k := range keys {
			sum += len(names[table[keyhash.Slot(k)]])
		}
		return sum
	})
}

// BenchmarkSlot is one key again and again: the latency of Slot.
func BenchmarkSlot(b *testing.B) {
	for _, key := range []string{
		"key:000000000001",
		"{user1000}.followers",
		"key:000000000001key:000000000001key:000000000001key:000000000001",
	} {
		b.Run(key[:8], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(key)))
			for b.Loop() {
				keyhash.Slot(key)
			}
		})
	}
}

func slotTable() ([]string, []uint16) {
	names := floorbench.Names(100)
	table := make([]uint16, keyhash.Slots)
	for i := range table {
		table[i] = uint16(i % len(names))
	}
	return names, table
}
