package jump

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/internal/quota"
)

// Buckets is the array that maps buckets to nodes: state, made by Build and
// Update. Both rows have one entry a bucket and index the same list of nodes.
type Buckets struct {
	// Owner is the node of each bucket, NoOwner for a hole.
	Owner []uint16
	// Last is who held a hole last, NoOwner if nobody is remembered. For a
	// bucket with an owner it means nothing and is NoOwner.
	Last []uint16
}

// Len returns the number of buckets, holes included.
func (b Buckets) Len() int { return len(b.Owner) }

func (b Buckets) check(nodes int) error {
	if len(b.Owner) != len(b.Last) {
		return fmt.Errorf("jump: %d buckets but %d former holders; the rows belong to different tables", len(b.Owner), len(b.Last))
	}
	if len(b.Owner) > MaxBuckets {
		return fmt.Errorf("jump: %d buckets are more than %d", len(b.Owner), MaxBuckets)
	}
	if err := quota.CheckEntries("jump", nodes, b.Owner); err != nil {
		return err
	}
	return quota.CheckEntries("jump", nodes, b.Last)
}

// Replace returns buckets in which node b stands wherever a stood, its former
// buckets included: the way to put a new machine in an old one's place at the
// minimum, whatever else changes with it. The receiver is not changed. Without
// it, an Update in which a leaves and b comes with the same weight does the
// same unless b has former buckets of its own, which it would take first.
func (b Buckets) Replace(from, to uint16) Buckets {
	out := Buckets{Owner: slices.Clone(b.Owner), Last: slices.Clone(b.Last)}
	for _, row := range [][]uint16{out.Owner, out.Last} {
		for i, o := range row {
			if o == from {
				row[i] = to
			}
		}
	}
	return out
}

// Build returns the buckets of nodes without a past: weights[i] x unit of them
// for each node in order of id. ids must be strictly ascending; weights run
// parallel, and a node of weight 0 owns nothing. unit is the number of buckets
// per unit of weight: 1 is the usual; 16 allows steps of a sixteenth if all
// weights are given in sixteenths.
//
// Build refuses unit 0 and more than MaxBuckets buckets. Cost: O(buckets).
func Build(ids []string, weights []uint32, unit uint32) (Buckets, error) {
	next, _, err := Update(Buckets{}, ids, weights, unit)
	return next, err
}

// Moves is what an Update changed, counted in buckets. The share of keys that
// moves is Movement's.
type Moves struct {
	Lost   int // buckets that lost their owner, handed on or not
	Gained int // buckets that got an owner
	Handed int // of both: from a node that lost to one that gained
}

// Update returns the buckets that follow prev when the nodes are now ids with
// weights. prev holds indices into the new ids and is not changed; the arguments
// are refused for the same reasons as Build's, and an error changes nothing.
//
// ids may contain nodes that are gone, with weight 0, so that they are
// remembered: a node must be listed so in the update in which it leaves, or
// its buckets count as holes of long ago, which moves more than needed if
// others gain at the same time. Later it may be dropped, and NoOwner put in its
// place; a node that then returns finds no former buckets.
//
// The rules, in order:
//  1. A node above its number gives up its highest buckets.
//  2. A node below its number takes back holes that it held last, lowest first;
//  3. then buckets given up in this update, so that a node replaced by another
//     costs its own keys and no more;
//  4. then any hole, lowest first; then new buckets at the end.
//  5. Buckets at the end that were given up now, and not taken, are cut off. A
//     hole left by an earlier update stays, because keys that drew past it
//     would move.
//
// Nodes take in order of id. Every change of one node moves the minimum.
func Update(prev Buckets, ids []string, weights []uint32, unit uint32) (Buckets, Moves, error) {
	if err := quota.CheckNodes("jump", ids, weights); err != nil {
		return Buckets{}, Moves{}, err
	}
	if err := prev.check(len(ids)); err != nil {
		return Buckets{}, Moves{}, err
	}
	if err := checkTotal(weights, unit); err != nil {
		return Buckets{}, Moves{}, err
	}
	e := newEdit(prev, weights, int(unit))
	e.giveUp()
	e.takeBack()
	e.handOver()
	e.fillAndAppend()
	e.cut()
	return e.Buckets, e.moves, nil
}

func checkTotal(weights []uint32, unit uint32) error {
	if unit == 0 {
		return fmt.Errorf("jump: 0 buckets per unit of weight; the default is 1")
	}
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	if sum > MaxBuckets/uint64(unit) {
		return fmt.Errorf("jump: weights of %d in all at %d buckets each are more than %d buckets; scale the weights down", sum, unit, MaxBuckets)
	}
	return nil
}

// edit is an update under way.
type edit struct {
	Buckets
	need    []int // by node: buckets to take; negative: to give up
	givenUp []int // buckets given up now and not yet taken, ascending
	moves   Moves
}

func newEdit(prev Buckets, weights []uint32, unit int) *edit {
	e := &edit{need: make([]int, len(weights))}
	e.Owner, e.Last = slices.Clone(prev.Owner), slices.Clone(prev.Last)
	for i, w := range weights {
		e.need[i] = int(w) * unit
	}
	for b, o := range e.Owner {
		if o != NoOwner {
			e.need[o]--
			e.Last[b] = NoOwner
		}
	}
	return e
}

func (e *edit) giveUp() {
	for b := len(e.Owner) - 1; b >= 0; b-- {
		if o := e.Owner[b]; o != NoOwner && e.need[o] < 0 {
			e.need[o]++
			e.Owner[b], e.Last[b] = NoOwner, o
			e.givenUp = append(e.givenUp, b)
		}
	}
	slices.Reverse(e.givenUp)
	e.moves.Lost = len(e.givenUp)
}

func (e *edit) take(b int, node uint16) {
	e.Owner[b], e.Last[b] = node, NoOwner
	e.need[node]--
	e.moves.Gained++
}

func (e *edit) takeBack() {
	for b, last := range e.Last {
		if last != NoOwner && e.need[last] > 0 {
			e.take(b, last)
		}
	}
}

func (e *edit) handOver() {
	for i := range e.need {
		for ; e.need[i] > 0 && len(e.givenUp) > 0; e.givenUp = e.givenUp[1:] {
			e.take(e.givenUp[0], uint16(i))
			e.moves.Handed++
		}
	}
}

func (e *edit) fillAndAppend() {
	b := 0
	for i := range e.need {
		for ; e.need[i] > 0; b++ {
			for b < len(e.Owner) && e.Owner[b] != NoOwner {
				b++
			}
			if b == len(e.Owner) {
				e.Owner, e.Last = append(e.Owner, NoOwner), append(e.Last, NoOwner)
			}
			e.take(b, uint16(i))
		}
	}
}

// cut shortens the array by what was given up now at its end.
func (e *edit) cut() {
	for n := len(e.givenUp); n > 0 && e.givenUp[n-1] == len(e.Owner)-1; n-- {
		e.Owner, e.Last = e.Owner[:len(e.Owner)-1], e.Last[:len(e.Last)-1]
	}
}

// Movement returns the share of keys whose owner differs between two arrays
// over the same list of nodes, exactly in the law of the hash; the two need not
// be neighbours in time. Without buckets on one side only it is 1.
//
// A key draws the same bucket on both sides unless the longer side's bucket c'
// is beyond the shorter's n; then the shorter's is uniform and independent. A
// side in a hole draws again from a fresh hash, the same on both sides. With p
// and q the nodes' shares before and after, U the buckets live on either side,
// and nothing but live buckets beyond n, that comes to
//
//	1/|U| (buckets live on both sides with another owner
//	       + sum of 1 - p(owner) over those live after only
//	       + sum of 1 - q(owner) over those live before only).
//
// For every change of one node it is the minimum sum max(0, q - p). Cost:
// O(buckets).
func Movement(prev, next Buckets) float64 {
	if len(prev.Owner) > len(next.Owner) {
		prev, next = next, prev // the law is symmetric
	}
	nodes := span(prev.Owner, next.Owner)
	p, before := shares(prev.Owner, nodes)
	q, after := shares(next.Owner, nodes)
	if before == 0 || after == 0 {
		if before == after {
			return 0
		}
		return 1
	}
	var stays, all float64 // in buckets of the longer side
	for c, x := range prev.Owner {
		switch y := next.Owner[c]; {
		case x == NoOwner && y == NoOwner:
			continue
		case x == NoOwner:
			stays += p[y]
		case y == NoOwner:
			stays += q[x]
		case x == y:
			stays++
		}
		all++
	}
	both := 0.0 // P(two independent owners agree)
	for o := range p {
		both += p[o] * q[o]
	}
	for _, y := range next.Owner[len(prev.Owner):] {
		if y != NoOwner {
			stays += p[y]
			all++
			continue
		}
		live := float64(before) / float64(len(prev.Owner)) // else both draw again
		stays += live * both
		all += live
	}
	return max(0, 1-stays/all)
}

// shares returns the share of each node, and the number of live buckets.
func shares(owner []uint16, nodes int) ([]float64, int) {
	share, live := make([]float64, nodes), 0
	for _, o := range owner {
		if o != NoOwner {
			share[o]++
			live++
		}
	}
	for o := range share {
		share[o] /= float64(live)
	}
	return share, live
}

// span returns one more than the highest node of both rows.
func span(a, b []uint16) int {
	n := 0
	for _, row := range [][]uint16{a, b} {
		for _, o := range row {
			if o != NoOwner {
				n = max(n, int(o)+1)
			}
		}
	}
	return n
}
