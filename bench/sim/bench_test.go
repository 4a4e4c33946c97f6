package sim

import (
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
)

// BenchmarkRun is the whole of the simulator: an arrival and its departure, 100
// servers at 90 %, P2C.
func BenchmarkRun(b *testing.B) {
	for _, n := range []struct {
		name    string
		servers int
	}{{"10", 10}, {"100", 100}, {"1000", 1000}} {
		b.Run("n="+n.name, func(b *testing.B) {
			b.ReportAllocs()
			set, err := NewSet(n.servers)
			if err != nil {
				b.Fatal(err)
			}
			p, err := balance.NewP2C(set, nil)
			if err != nil {
				b.Fatal(err)
			}
			rate := .9 * float64(n.servers)
			s, err := New(Config{Seed: 1, Servers: Equal(n.servers, Server{}), Clients: []Client{{Picker: p}}, Rate: rate,
				Window: time.Duration(float64(b.N) / rate * float64(Unit))})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			r := s.Run()
			b.ReportMetric(float64(r.Arrivals)/b.Elapsed().Seconds()/1e6, "Marrivals/s")
		})
	}
}

// BenchmarkQueue takes and pushes events among 100: into the hole that was left, and
// after the hole was closed.
func BenchmarkQueue(b *testing.B) {
	for _, closed := range []bool{false, true} {
		name := "hole"
		if closed {
			name = "closed"
		}
		b.Run(name, func(b *testing.B) {
			var q queue
			dice := NewDice(1, 1)
			for i := range uint32(100) {
				q.push(event{int64(dice.Below(1e9)), i, 0})
			}
			for b.Loop() {
				e, _ := q.top()
				q.take()
				if closed {
					q.close()
				}
				q.push(event{e.at + int64(dice.Below(1e9)), e.order + 100, 0})
			}
		})
	}
}
