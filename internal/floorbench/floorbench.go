// Package floorbench measures a placement lookup against the floor: the least
// that any lookup of a key's node has to do.
//
// The floor is xxhash.Sum64String of the key, a multiply-high, one load from a
// table of uint16 and the name of the node. What a package costs is stated as a
// multiple of it, taken in the same process, because nanoseconds differ from
// machine to machine and from minute to minute, and the ratio hardly does.
//
// A benchmark's iteration is one pair: a pass of the floor over all keys, then
// a pass of the subject over the same keys. The published figures are
//
//	go test -run '^$' -bench Ratio -benchtime 10x ./ring
//
// that is the median of ten interleaved pairs over 1,000,000 distinct 16-byte
// keys. With -benchtime 1x each benchmark runs one pair.
//
// On Linux the time is that of the thread, so that other work on the machine
// takes part only through the caches and the clock rate.
//
// The package is for benchmarks only: it imports testing.
package floorbench

import (
	"fmt"
	"math/bits"
	"runtime"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// NumKeys is the number of keys that the stated ratios are measured with.
const NumKeys = 1_000_000

// KeySize is the length of each key in bytes.
const KeySize = 16

// floorSlots and floorNodes give the floor its size: a table of 32 KiB, as many
// slots as Redis Cluster has, and 100 names. They do not grow with the subject,
// so a subject that leaves the cache is not flattered by a floor that does too.
const (
	floorSlots = 16384
	floorNodes = 100
)

// Pass looks up every key once and returns the sum of the lengths of the node
// names found. The loop is the caller's, so that the lookup can be inlined as
// it would be in a program; the sum keeps it from being optimised away.
type Pass func(keys []string) int

// Sizes are the numbers of nodes that benchmarks run with.
func Sizes() []int { return []int{10, 100, 1000, 10000} }

// Keys returns n distinct keys of KeySize bytes, the same on every call,
// one after the other in memory.
func Keys(n int) []string {
	arena := make([]byte, 0, n*KeySize)
	for i := range n {
		arena = fmt.Appendf(arena, "key:%012d", i)
	}
	all := string(arena)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = all[i*KeySize : (i+1)*KeySize]
	}
	return keys
}

// Names returns n node names in ascending order.
func Names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("node-%05d", i)
	}
	return names
}

// Weights returns n weights of 1.
func Weights(n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

// Floor returns the pass that everything else is measured against.
func Floor() Pass {
	names := Names(floorNodes)
	table := make([]uint16, floorSlots)
	for i := range table {
		table[i] = uint16(uint64(i) * 0x9e3779b97f4a7c15 >> 32 % floorNodes)
	}
	return func(keys []string) int {
		sum := 0
		for _, k := range keys {
			slot, _ := bits.Mul64(xxhash.Sum64String(k), uint64(len(table)))
			sum += len(names[table[slot]])
		}
		return sum
	}
}

// Ratio runs pass and the floor in turn, a pair an iteration, and reports the
// median of the pairs' ratios as "x-floor", and the medians of both as
// "ns/key" and "floor-ns/key". Allocations are reported per pair: 0 means that
// no lookup allocated.
func Ratio(b *testing.B, keys []string, pass Pass) {
	b.Helper()
	p, err := warm(keys, pass)
	if err != nil {
		b.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	for b.Loop() {
		p.run()
	}
	f := p.figures()
	b.ReportMetric(f.Ratio, "x-floor")
	b.ReportMetric(f.Key, "ns/key")
	b.ReportMetric(f.FloorKey, "floor-ns/key")
	b.ReportMetric(0, "ns/op") // a pair's time says nothing; leave it out
}
