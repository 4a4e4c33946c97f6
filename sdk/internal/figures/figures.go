// Package figures lists what a client tells of itself as metrics, once for all
// metrics libraries.
package figures

import (
	"errors"
	"time"

	"github.com/shardd/shardd/resilience/breaker"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Kind is how a figure behaves.
type Kind uint8

// The kinds.
const (
	Gauge   Kind = iota // goes up and down
	Counter             // only grows, while the client lives
)

// Figure is one metric of a client.
type Figure struct {
	Name string // with dots; the prefix is not part of it
	Unit string // as in UCUM, "s" or "{request}"; "" = none
	Help string
	Kind Kind
	Of   func(Reading) float64
}

// NodeFigure is one metric of each node.
type NodeFigure struct {
	Name, Unit, Help string
	Kind             Kind
	Of               func(sdk.NodeLoad) float64
}

// Reading is what a client says of itself at one time.
type Reading struct {
	State sdk.State
	Load  sdk.LoadStats
	Age   time.Duration
}

// Read asks the client. O(nodes).
func Read(c *sdk.Client) Reading { return Reading{c.State(), c.LoadStats(), c.Age()} }

// Client returns the figures of a client.
func Client() []Figure {
	return []Figure{
		{"topology.epoch", "", "Epoch of the version that lookups go by.", Gauge, func(r Reading) float64 { return float64(r.State.Held.Version.Epoch) }},
		{"topology.seq", "", "Sequence number, within its epoch, of the version that lookups go by.", Gauge, func(r Reading) float64 { return float64(r.State.Held.Version.Seq) }},
		{"topology.age", "s", "Time since the source last said that the version is the newest.", Gauge, func(r Reading) float64 { return r.Age.Seconds() }},
		{"topology.nodes", "{node}", "Nodes in the version, owners or not.", Gauge, func(r Reading) float64 { return float64(r.State.Nodes) }},
		{"topology.from_snapshot", "", "1 while lookups go by the snapshot file and no source has confirmed it.", Gauge, func(r Reading) float64 {
			return flag(r.State.Origin == sdk.OriginSnapshot)
		}},
		{"topologies.taken", "{version}", "Versions taken.", Counter, func(r Reading) float64 { return float64(r.State.Taken) }},
		{"source.problem", "", "1 while there is a problem with the source.", Gauge, func(r Reading) float64 { return flag(r.State.Problem != nil) }},
		{"requests", "{request}", "Requests admitted by Acquire.", Counter, func(r Reading) float64 { return float64(r.Load.Acquired) }},
		{"requests.diverted", "{request}", "Requests that went to another node than the first in their key's order.", Counter, func(r Reading) float64 { return float64(r.Load.Diverted) }},
		{"requests.unavailable", "{request}", "Requests that every node refused.", Counter, func(r Reading) float64 { return float64(r.Load.Unavailable) }},
		{"requests.in_zone", "{request}", "Requests kept in the client's zone.", Counter, func(r Reading) float64 { return float64(r.Load.InZone) }},
		{"requests.left_zone", "{request}", "Requests that had a replica in the zone and went elsewhere.", Counter, func(r Reading) float64 { return float64(r.Load.LeftZone) }},
		{"probes", "", "Nodes asked for requests; per request, how often affinity is lost.", Counter, func(r Reading) float64 { return float64(r.Load.Probes) }},
		{"refusals", "", "Times that a node asked was over its cap.", Counter, func(r Reading) float64 { return float64(r.Load.Refusals) }},
		{"over_cap", "{request}", "Requests that a node took over its cap because all refused.", Counter, func(r Reading) float64 { return float64(r.Load.OverCap) }},
		{"load", "", "Load of all nodes, in the client's view of load.", Gauge, func(r Reading) float64 { return float64(r.Load.Total) }},
	}
}

// Node returns the figures of each node.
func Node() []NodeFigure {
	return []NodeFigure{
		{"node.requests", "{request}", "Requests admitted to the node.", Counter, func(n sdk.NodeLoad) float64 { return float64(n.Acquired) }},
		{"node.in_flight", "", "Cost of the requests in flight at the node, from this client.", Gauge, func(n sdk.NodeLoad) float64 { return float64(n.InFlight) }},
		{"node.load", "", "Load of the node, in the client's view of load.", Gauge, func(n sdk.NodeLoad) float64 { return float64(n.Load) }},
		{"node.refusals", "", "Times that the node was asked and over its cap.", Counter, func(n sdk.NodeLoad) float64 { return float64(n.Refusals) }},
		{"node.over_cap", "{request}", "Requests that the node took over its cap.", Counter, func(n sdk.NodeLoad) float64 { return float64(n.OverCap) }},
		{"node.over_cap_time", "s", "Time that the node was over its cap.", Counter, func(n sdk.NodeLoad) float64 { return n.OverFor.Seconds() }},
		{"node.ejected", "", "1 while the node is ejected as an outlier.", Gauge, func(n sdk.NodeLoad) float64 { return flag(n.Ejected) }},
		{"node.breaker_open", "", "1 while the node's breaker is not closed.", Gauge, func(n sdk.NodeLoad) float64 { return flag(n.Breaker != breaker.Closed) }},
		{"node.warming", "", "Share of its weight that the node has in slow start; 1 = all.", Gauge, func(n sdk.NodeLoad) float64 { return n.Warming }},
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Reason returns the label for why a topology was refused.
func Reason(err error) string {
	for _, r := range reasons() {
		if errors.Is(err, r.err) {
			return r.label
		}
	}
	return "other"
}

// Reasons returns all labels.
func Reasons() []string {
	var labels []string
	for _, r := range reasons() {
		labels = append(labels, r.label)
	}
	return append(labels, "other")
}

type reason struct {
	err   error
	label string
}

func reasons() []reason {
	return []reason{{sdk.ErrCluster, "cluster"}, {sdk.ErrForked, "forked"}, {sdk.ErrOlder, "older"}, {topology.ErrUnknown, "unknown"}}
}

// BuildBuckets are the bounds in seconds for the time that tables take.
func BuildBuckets() []float64 { return []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1} }
