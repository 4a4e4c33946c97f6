package compat

import (
	"fmt"
	"testing"

	"github.com/shardd/shardd/topology"
)

// BenchmarkNew builds mappings of N nodes of weight 1.
func BenchmarkNew(b *testing.B) {
	for _, mode := range []topology.Mode{topology.ModeKetama, topology.ModeNginx, topology.ModeHAProxy, topology.ModeEnvoyRing, topology.ModeEnvoyMaglev, topology.ModeGoRedisRing} {
		for _, n := range []int{10, 100, 1000, 10_000} {
			f := topology.Foreign{Mode: mode}
			if mode == topology.ModeHAProxy {
				f.Distribution = "consistent"
			}
			addrs := make([]string, n)
			for i := range addrs {
				addrs[i] = fmt.Sprintf("10.%d.%d.%d:7200", i>>16, i>>8&255, i&255)
			}
			nodes := list(addrs, nil)
			for i := range nodes {
				nodes[i].ID = fmt.Sprintf("n%05d", i)
			}
			b.Run(fmt.Sprintf("%s/N=%d", mode, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := New(f, nodes); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLocate is one lookup of a ready hash.
func BenchmarkLocate(b *testing.B) {
	for _, mode := range []topology.Mode{topology.ModeKetama, topology.ModeGomemcache, topology.ModeJump, topology.ModeGoRedisRing} {
		for _, n := range []int{10, 100, 1000} {
			addrs := make([]string, n)
			for i := range addrs {
				addrs[i] = fmt.Sprintf("10.0.%d.%d:7200", i>>8, i&255)
			}
			m, err := New(topology.Foreign{Mode: mode}, list(addrs, nil))
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/N=%d", mode, n), func(b *testing.B) {
				b.ReportAllocs()
				h := uint64(1)
				for b.Loop() {
					h = h*0x9e3779b97f4a7c15 + 1
					m.Locate(h)
				}
			})
		}
	}
}
