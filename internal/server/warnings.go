package server

import (
	"fmt"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/placement"
)

// mostPeak is the ratio of the fullest node to its fair share above which an
// edit is answered with a warning.
const mostPeak = 1.25

// warnings says what of a version may not be meant.
func warnings(table *placement.Table) []api.Warning {
	t := table.Topology()
	spec, owners := t.Spec(), 0
	for _, n := range t.Nodes() {
		if n.OwnerWeight() > 0 {
			owners++
		}
	}
	var all []api.Warning
	if owners == 0 {
		all = append(all, api.Warning{Code: "no_nodes", Message: "no node owns keys: every lookup fails", Hint: "add a node, or give one a weight above 0"})
	}
	if owners > 0 && owners < int(spec.Replicas) {
		all = append(all, api.Warning{Code: "few_nodes", Message: fmt.Sprintf("%d replicas are wanted, but %d nodes own keys: keys have %d copies", spec.Replicas, owners, owners),
			Hint: "add nodes, or lower replicas"})
	}
	if table.ZonesRelaxed() {
		all = append(all, api.Warning{Code: "few_zones", Message: "there are fewer zones than replicas: some copies of a key share a zone", Hint: "spread the nodes over more zones, or lower replicas"})
	}
	for _, w := range placement.Warnings(table) {
		all = append(all, api.Warning{Code: w.Code, Message: w.Message, Hint: w.Hint})
	}
	if peak := table.Peak(); peak > mostPeak {
		all = append(all, api.Warning{Code: "imbalance", Message: fmt.Sprintf("the fullest node gets %.2f times the share that its weight asks for", peak), Hint: balanceHint(t)})
	}
	return all
}
