package placement_test

import (
	"fmt"
	"testing"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// flapped is a version in whose record a tenth of n nodes left and came back.
func flapped(b *testing.B, spec topology.Spec, n int) *placement.Table {
	nodes := make([]topology.Node, n)
	for i := range nodes {
		nodes[i] = topology.Node{ID: fmt.Sprintf("cache-%05d", i), Addr: fmt.Sprintf("10.0.%d.%d:1", i/250, i%250), Weight: 1}
	}
	var table *placement.Table
	var err error
	for i, list := range [][]topology.Node{nodes, nodes[min(n/10, 200):], nodes} {
		d := topology.Draft{Cluster: "c", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: uint64(i + 1)}, Spec: spec, Nodes: list}
		if table, err = placement.UpdateWith(table, d, placement.UpdateOptions{Tenure: true}); err != nil {
			b.Fatal(err)
		}
	}
	return table
}

func benchmarkSpecs() map[string]topology.Spec {
	specs := map[string]topology.Spec{"nginx": {Compat: topology.Foreign{Mode: topology.ModeNginx}}}
	for _, a := range topology.Algorithms() {
		specs[string(a)] = topology.Spec{Algorithm: a}
	}
	return specs
}

// BenchmarkPrepareOwnedSince is the index: a build of the table stands beside it.
func BenchmarkPrepareOwnedSince(b *testing.B) {
	for name, spec := range benchmarkSpecs() {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/N=%d", name, n), func(b *testing.B) {
				table := flapped(b, spec, n)
				for _, prepare := range []bool{false, true} {
					b.Run(map[bool]string{false: "build", true: "build+index"}[prepare], func(b *testing.B) {
						b.ReportAllocs()
						for b.Loop() {
							again, err := placement.Next(nil, table.Topology())
							if err != nil {
								b.Fatal(err)
							}
							if prepare {
								again.PrepareOwnedSince()
							}
						}
					})
				}
			})
		}
	}
}

// BenchmarkOwnedSince is a question once the index is there, beside the lookup that
// comes before it.
func BenchmarkOwnedSince(b *testing.B) {
	hs := stepHashes()
	for name, spec := range benchmarkSpecs() {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/N=%d", name, n), func(b *testing.B) {
				table := flapped(b, spec, n)
				table.PrepareOwnedSince()
				b.Run("locate", func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						table.Locate(hs[i%len(hs)])
					}
				})
				b.Run("since", func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						h := hs[i%len(hs)]
						table.FirstSince(h, table.Locate(h))
					}
				})
			})
		}
	}
}
