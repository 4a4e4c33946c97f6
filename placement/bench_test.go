package placement

import (
	"fmt"
	"testing"

	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/topology"
)

// BenchmarkRatioRoute is hash, locate and the node's name, against the floor.
func BenchmarkRatioRoute(b *testing.B) {
	keys := floorbench.Keys(floorbench.NumKeys)
	for _, spec := range []string{"ring", "jump", "jumpback", "rendezvous", "maglev", "slots:65536", "ring crc16"} {
		for _, n := range floorbench.Sizes() {
			if spec == "rendezvous" && n > 1000 || n > 1000 && spec == "ring crc16" {
				continue
			}
			b.Run(fmt.Sprintf("%s/N=%d", spec, n), func(b *testing.B) {
				table := first(b, specOf(spec), someNodes(n))
				names := floorbench.Names(n)
				floorbench.Ratio(b, keys, func(keys []string) int {
					sum := 0
					for _, k := range keys {
						sum += len(names[table.Locate(table.Hash(k))])
					}
					return sum
				})
			})
		}
	}
}

func BenchmarkAppendReplicas(b *testing.B) {
	for _, spec := range []string{"ring r3", "ring r3 zones", "maglev r3 zones", "slots:65536 r3 zones", "jump r3 zones", "rendezvous r3 zones"} {
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/N=%d", spec, n), func(b *testing.B) {
				table := first(b, specOf(spec), zonedNodes(n, 5))
				list, h := make([]int, 0, 64), uint64(1)
				b.ReportAllocs()
				for b.Loop() {
					h = h*0x9e3779b97f4a7c15 + 1
					list = table.AppendReplicas(list[:0], h, 3)
				}
			})
		}
	}
}

func BenchmarkUpdateAddOne(b *testing.B) {
	for _, spec := range []string{"ring", "jump", "rendezvous", "maglev", "slots:65536"} {
		for _, n := range floorbench.Sizes() {
			b.Run(fmt.Sprintf("%s/N=%d", spec, n), func(b *testing.B) {
				a := first(b, specOf(spec), someNodes(n))
				d := draft(2, specOf(spec), someNodes(n+1))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Update(a, d); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, spec := range []string{"ring", "jump", "rendezvous", "maglev", "slots:65536"} {
		for _, n := range floorbench.Sizes() {
			b.Run(fmt.Sprintf("%s/N=%d", spec, n), func(b *testing.B) {
				topo := first(b, specOf(spec), someNodes(n)).Topology()
				b.ReportAllocs()
				for b.Loop() {
					if _, err := New(topo); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkMovementAddOne(b *testing.B) {
	for _, spec := range []string{"ring", "jump", "rendezvous", "maglev", "slots:65536", "ring r3", "ring r3 zones", "rendezvous r3"} {
		for _, n := range floorbench.Sizes() {
			b.Run(fmt.Sprintf("%s/N=%d", spec, n), func(b *testing.B) {
				from := first(b, specOf(spec), someNodes(n))
				to := after(b, from, specOf(spec), someNodes(n+1))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Movement(from, to); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("seed ring to maglev/N=1000", func(b *testing.B) {
		from := first(b, specOf("ring"), someNodes(1000))
		d := draft(2, topology.Spec{Algorithm: topology.Maglev}, someNodes(1000))
		for b.Loop() {
			if _, err := Update(from, d); err != nil {
				b.Fatal(err)
			}
		}
	})
}
