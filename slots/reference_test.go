package slots_test

import (
	"math"

	"github.com/shardd/shardd/slots"
)

// fewestMoves is the least number of copies that any table with the quotas of
// next must move from prev: a minimum-cost flow source -> slot -> (slot, zone)
// -> node -> sink in a network of single arcs, by Bellman and Ford. Each zone
// holds at most one copy of a slot. It is slow and simple.
func fewestMoves(prev, next slots.Rows, zones []uint16) int {
	n, count := len(zones), next.Count()
	g := newNetwork()
	source, sink := g.node(), g.node()
	nodes := make([]int, n)
	quota := make([]int, n)
	for i := range nodes {
		nodes[i] = g.node()
	}
	for s := range count {
		width := 0
		had := map[uint16]bool{}
		for _, row := range prev {
			had[row[s]] = true
		}
		for _, row := range next {
			if row[s] != slots.NoOwner {
				quota[row[s]]++
				width++
			}
		}
		slot := g.node()
		g.arc(source, slot, width, 0)
		inZone := map[uint16]int{}
		for i, z := range zones {
			if _, ok := inZone[z]; !ok {
				inZone[z] = g.node()
				g.arc(slot, inZone[z], 1, 0)
			}
			cost := 1
			if had[uint16(i)] {
				cost = 0
			}
			g.arc(inZone[z], nodes[i], 1, cost)
		}
	}
	for i, q := range quota {
		g.arc(nodes[i], sink, q, 0)
	}
	return g.cheapest(source, sink)
}

type arc struct{ to, room, cost, back int }

type network struct{ out [][]arc }

func newNetwork() *network { return &network{} }

func (g *network) node() int {
	g.out = append(g.out, nil)
	return len(g.out) - 1
}

func (g *network) arc(from, to, room, cost int) {
	g.out[from] = append(g.out[from], arc{to, room, cost, len(g.out[to])})
	g.out[to] = append(g.out[to], arc{from, 0, -cost, len(g.out[from]) - 1})
}

// cheapest returns the cost of the cheapest of the largest flows.
func (g *network) cheapest(source, sink int) int {
	total := 0
	for {
		label, via := make([]int, len(g.out)), make([][2]int, len(g.out))
		for i := range label {
			label[i] = math.MaxInt32
		}
		label[source] = 0
		queue, in := []int{source}, make([]bool, len(g.out))
		for len(queue) > 0 {
			a := queue[0]
			queue, in[a] = queue[1:], false
			for k, e := range g.out[a] {
				if e.room > 0 && label[a]+e.cost < label[e.to] {
					label[e.to], via[e.to] = label[a]+e.cost, [2]int{a, k}
					if !in[e.to] {
						in[e.to] = true
						queue = append(queue, e.to)
					}
				}
			}
		}
		if label[sink] == math.MaxInt32 {
			return total
		}
		for b := sink; b != source; b = via[b][0] {
			e := &g.out[via[b][0]][via[b][1]]
			e.room--
			g.out[b][e.back].room++
			total += e.cost
		}
	}
}
