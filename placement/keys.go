package placement

import (
	"iter"
	"slices"
)

// KeyReport is the movement of a list of keys: a count, not an estimate.
type KeyReport struct {
	// Total is the number of keys, Moved that of keys that some node must get
	// which did not hold them before, Copies that of copies that nodes must
	// get (with one replica the same as Moved).
	Total  int `json:"total"`
	Moved  int `json:"moved"`
	Copies int `json:"copies"`
	// Ratio is Copies / (Total x replicas after); 0 without keys.
	Ratio float64 `json:"ratio"`
	// Nodes lists every node that holds a copy before or after, by ID.
	Nodes []KeyNode `json:"nodes"`
}

// KeyNode is one node's part of a list of keys. After = Before + In - Out,
// except in a first version, into which nothing moves.
type KeyNode struct {
	ID     string `json:"id"`
	Before int    `json:"before"`
	After  int    `json:"after"`
	In     int    `json:"in"`
	Out    int    `json:"out"`
}

// MovementKeys counts what moves of the given keys; a key that is listed twice
// counts twice. from may be nil, or own nothing: nothing moves then. If nobody
// is left to own keys, every key moves, to nobody. O(keys).
func MovementKeys(from, to *Table, keys iter.Seq[string]) KeyReport {
	c := newComparison(from, to, MovementOptions{}.withDefaults())
	k := keyCount{nodes: make([]KeyNode, len(c.roster.ids)), b: newLister(to, c.roster.toAt)}
	if from != nil {
		k.a = newLister(from, c.roster.fromAt)
	}
	for i, id := range c.roster.ids {
		k.nodes[i].ID = id
	}
	for key := range keys {
		k.add(key)
	}
	return k.report()
}

type keyCount struct {
	KeyReport
	nodes []KeyNode
	a, b  *lister // a may be nil
}

func (k *keyCount) add(key string) {
	k.Total++
	var a, b []int
	if k.a != nil && k.a.copies > 0 {
		a = k.a.byKey(key)
	}
	if k.b.copies > 0 {
		b = k.b.byKey(key)
	}
	entered := 0
	for _, x := range b {
		k.nodes[x].After++
		if len(a) > 0 && !slices.Contains(a, x) {
			k.nodes[x].In++
			entered++
		}
	}
	for _, x := range a {
		k.nodes[x].Before++
		if !slices.Contains(b, x) {
			k.nodes[x].Out++
		}
	}
	if len(b) == 0 {
		entered = len(a)
	}
	k.Copies += entered
	if entered > 0 {
		k.Moved++
	}
}

func (k *keyCount) report() KeyReport {
	copies := k.b.copies
	if copies == 0 && k.a != nil {
		copies = k.a.copies
	}
	if k.Total > 0 && copies > 0 {
		k.Ratio = float64(k.Copies) / float64(k.Total*copies)
	}
	k.Nodes = slices.DeleteFunc(k.nodes, func(n KeyNode) bool { return n.Before == 0 && n.After == 0 })
	return k.KeyReport
}
