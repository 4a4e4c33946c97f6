package bounded

import (
	"fmt"
	"testing"
)

// BenchmarkAdmitRelease is the rule alone: one admission and its release, the
// nodes in turn.
func BenchmarkAdmitRelease(b *testing.B) {
	for _, every := range []int{0, 32} {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("every=%d/%d", every, n), func(b *testing.B) {
				s := benchSet(b, n, Options{Every: every})
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					k := i * 7919 % n
					if !s.Admit(k, 1) {
						b.Fatal("refused")
					}
					s.Node(k).Release(1)
					i++
				}
			})
		}
	}
}

func benchSet(b testing.TB, n int, o Options) *Set {
	b.Helper()
	g := NewGroup(o)
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{Node: g.NewNode(), Weight: 1}
	}
	s, err := g.NewSet(members, 1.25)
	if err != nil {
		b.Fatal(err)
	}
	g.Use(s)
	return s
}
