// Package pickers measures what it costs to pick a node for a request and to
// say that the request is done: this module's policies beside the pickers of
// grpc-go, go-kratos and go-zero and a scan under a mutex, in one run.
//
// Every picker is asked the way its own callers ask it: ours through
// balance.Picker, grpc-go's and go-zero's through the balancer that builds them
// and balancer.Picker, kratos' through selector.Selector.
package pickers

import (
	"math/bits"
	"sync/atomic"

	"github.com/shardd/shardd/internal/splitmix"
)

// Loop makes that many requests, one after the other: a pick, work of that many
// turns of spin, and its end. first is the number of the first request; loops
// that run at the same time get numbers far apart.
type Loop func(first uint64, requests, work int)

// Subject is a policy to be measured.
type Subject struct {
	Name string
	// Ours says that it is a policy of this module.
	Ours bool
	// Clock is who reads the clock: "no", "argument", "caller" or "inside".
	Clock string
	// Only, if above 0, is the one number of nodes to measure in the place of
	// that which is nearest below it.
	Only int
	// Note is what a reader of its row must know.
	Note string
	// New returns a loop over n nodes, and what ends it.
	New func(n int) (Loop, func(), error)
}

// Subjects returns everything that is measured, ours first.
func Subjects() []Subject {
	list := append(own(), timed()...)
	list = append(list, Subject{Name: "scan under a mutex", Clock: "no", New: newScan,
		Note: "least requests in flight of all, counted under one lock"})
	list = append(list, grpcPickers()...)
	list = append(list, kratosPickers()...)
	return append(list, goZeroPickers()...)
}

// none ends what needs no end.
func none() {}

// sink keeps the turns of spin from being left out.
var sink atomic.Uint64

// spin takes that many turns of a few nanoseconds.
//
//go:noinline
func spin(turns int) {
	x := uint64(turns)
	for range turns {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 42 {
		sink.Add(1)
	}
}

// padded is a counter with a cache line of its own.
type padded struct {
	n atomic.Int64
	_ [56]byte
}

// newLeast is the least that a policy which counts requests in flight can do:
// it draws a node, and raises and lowers its count.
func newLeast(n int) (Loop, func(), error) {
	nodes := make([]padded, n)
	return func(first uint64, requests, work int) {
		for k := first; k < first+uint64(requests); k++ {
			i, _ := bits.Mul64(splitmix.Mix(k*splitmix.Golden), uint64(len(nodes)))
			nodes[i].n.Add(1)
			if work > 0 {
				spin(work)
			}
			nodes[i].n.Add(-1)
		}
	}, none, nil
}
