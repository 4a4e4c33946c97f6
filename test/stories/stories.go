// Package stories publishes random changes of a topology, for tests of what must hold
// whatever is published: nodes come, go, come back, weigh more or less, drain and are
// down, at once or in steps.
package stories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// Teller tells a story. Log is what was published so far.
type Teller struct {
	Plane *shardtest.Plane
	Rand  *rand.Rand
	// Nodes are all that there can be; two of them stay up.
	Nodes []topology.Node
	Log   []string
}

// Spec draws a spec with the algorithm.
func Spec(rnd *rand.Rand, algorithm topology.Algorithm) topology.Spec {
	return topology.Spec{Algorithm: algorithm, Replicas: uint32(1 + rnd.IntN(3)), ZoneAware: rnd.IntN(4) == 0}
}

// Publish publishes one more version.
func (t *Teller) Publish() {
	if t.Plane.Topology().Transition() != nil {
		t.goOn()
		return
	}
	nodes, what := t.edit()
	edit := func(d *topology.Declared) { d.Nodes = nodes }
	if !strings.HasPrefix(what, "remove") && t.Rand.IntN(2) == 0 {
		share := t.Rand.Float64()
		t.Plane.Begin(share, edit)
		t.say("begin %.2f %s", share, what)
		return
	}
	t.Plane.Publish(edit)
	t.say("%s", what)
}

func (t *Teller) say(format string, args ...any) { t.Log = append(t.Log, fmt.Sprintf(format, args...)) }

func (t *Teller) goOn() {
	if t.Rand.IntN(3) == 0 {
		t.Plane.Finish()
		t.say("finish")
		return
	}
	share := t.Rand.Float64()
	t.Plane.Step(share)
	t.say("step %.2f", share)
}

// edit changes one node.
func (t *Teller) edit() ([]topology.Node, string) {
	nodes := slices.Clone(t.Plane.Topology().Nodes())
	one := t.Nodes[t.Rand.IntN(len(t.Nodes))]
	at := slices.IndexFunc(nodes, func(n topology.Node) bool { return n.ID == one.ID })
	if at < 0 {
		return append(nodes, one), "add " + one.ID
	}
	if nodes[at].State != topology.StateActive {
		nodes[at].State = topology.StateActive
		return nodes, "up " + one.ID
	}
	kind := t.Rand.IntN(4)
	if othersUp(nodes, at) < 2 {
		kind = 0
	}
	switch kind {
	case 0:
		nodes[at].Weight = uint32(1 + t.Rand.IntN(3))
		return nodes, fmt.Sprint("weight ", one.ID, " ", nodes[at].Weight)
	case 1:
		return slices.Delete(nodes, at, at+1), "remove " + one.ID
	case 2:
		nodes[at].State = topology.StateDown
		return nodes, "down " + one.ID
	default:
		nodes[at].State = topology.StateDraining
		return nodes, "drain " + one.ID
	}
}

func othersUp(nodes []topology.Node, but int) (up int) {
	for i, n := range nodes {
		if i != but && n.State == topology.StateActive {
			up++
		}
	}
	return up
}
