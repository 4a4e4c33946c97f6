package topology

import (
	"fmt"
	"testing"
)

// BenchmarkDelta is what a server pays once for each version that clients hold
// (diff), and a client for each version (apply), next to decoding the whole
// version: one node added, 16384 slots.
//
//	go test -run '^$' -bench Delta ./topology
func BenchmarkDelta(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		d := tableDraft(n, 16384)
		base, target := mustTopology(d), mustTopology(grow(d))
		delta, err := Diff(base, target)
		if err != nil {
			b.Fatal(err)
		}
		encoded, object := target.Encode(), target.Objects()[0].Encode()
		b.Run(fmt.Sprint("diff/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Diff(base, target)
			}
			b.ReportMetric(float64(len(delta.Encode())), "B/delta")
			b.ReportMetric(float64(len(encoded)+len(object)), "B/whole")
		})
		b.Run(fmt.Sprint("apply/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				got, err := DecodeDelta(delta.Encode())
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := got.Apply(base); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint("whole/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				top, err := Decode(encoded)
				if err != nil {
					b.Fatal(err)
				}
				o, err := DecodeObject(object)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := top.Attach(o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
