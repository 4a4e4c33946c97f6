package outlier_test

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/outlier"
)

// TestLaws takes random steps and holds the law after each.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Float64Range(.01, 1).Draw(t, "limit")
		ejections := 0
		d, err := outlier.New(outlier.Config{
			Limit: limit, Consecutive: 2, Interval: 5 * sec, MinRequests: 1, MinNodes: 3, FailureShare: .9, Base: 3 * sec,
			OnChange: func(e outlier.Event) {
				if e.Ejected {
					ejections++
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		states := map[*outlier.Node]outlier.State{}
		var nodes []*outlier.Node
		now := time.Duration(0)
		for range rapid.IntRange(1, 1000).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(-200, 1000).Draw(t, "dt")) * time.Millisecond
			was := ejections
			op := rapid.IntRange(0, 9).Draw(t, "op")
			if len(nodes) == 0 {
				op = 0
			}
			i := 0
			if len(nodes) > 0 {
				i = rapid.IntRange(0, len(nodes)-1).Draw(t, "i")
			}
			switch {
			case op == 0 && len(nodes) < 12:
				s := outlier.State(rapid.IntRange(0, 2).Draw(t, "state"))
				n := d.Add("", s, now)
				nodes, states[n] = append(nodes, n), s
			case op == 1:
				d.Remove(nodes[i], now)
				delete(states, nodes[i])
				nodes = slices.Delete(nodes, i, i+1)
			case op == 2:
				s := outlier.State(rapid.IntRange(0, 2).Draw(t, "state"))
				nodes[i].Set(s, now)
				states[nodes[i]] = s
			case op == 3:
				nodes[i].Return(now)
			case op == 4:
				d.Sweep(now)
			default:
				nodes[i].Record(now, resilience.Outcome(rapid.IntRange(0, 4).Draw(t, "outcome")))
			}
			n, down := 0, 0
			for _, x := range nodes {
				switch states[x] {
				case outlier.Up:
					n++
				case outlier.Down:
					n, down = n+1, down+1
				}
				if x.Ejected() && states[x] != outlier.Up {
					t.Fatal("a node that is not up is ejected")
				}
				if states[x] == outlier.Out && x.Usable() {
					t.Fatal("a node that is out is usable")
				}
			}
			most, out := int(math.Floor(limit*float64(n)+1e-9)), len(ejected(nodes))
			if out > max(0, most-down) || ejections > was && out+down > most {
				t.Fatalf("%d ejected, %d down, limit %d of %d", out, down, most, n)
			}
			if n > 0 && usable(nodes) == 0 {
				t.Fatalf("none of %d usable", n)
			}
			if s := d.Stats(); s.Ejected != out || s.Down != down || s.Nodes != n {
				t.Fatalf("%+v; counted %d, %d, %d", s, out, down, n)
			}
		}
	})
}

// TestRace has outcomes, changes and readers at once.
func TestRace(t *testing.T) {
	d := must(t, outlier.Config{Limit: .5, Interval: 1, Base: 5, MinRequests: 1, OnChange: func(e outlier.Event) {
		e.Node.Ejected() // a listener may ask
	}})
	nodes := fleet(d, 8)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				now := time.Duration(i)
				n := nodes[(i+g)%len(nodes)]
				n.Record(now, resilience.Outcome(1+(i/7+g)%4))
				switch i % 50 {
				case 0:
					d.Sweep(now)
				case 10:
					n.Set(outlier.State(i/50%3), now)
				case 20:
					n.Set(outlier.Up, now)
				case 30:
					x := d.Add("x", outlier.Up, now)
					x.Record(now, resilience.Failure)
					d.Remove(x, now)
				}
				if s := d.Stats(); s.Ejected < 0 || s.Ejected > max(0, s.Limit-s.Down) {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	wg.Wait()
	for _, n := range nodes {
		n.Set(outlier.Up, time.Hour)
	}
	d.Sweep(time.Hour)
	d.Sweep(2 * time.Hour)
	if s := d.Stats(); s.Nodes != 8 || s.Down != 0 || s.Ejected > s.Limit || usable(nodes) < 4 {
		t.Errorf("%+v, %d usable", s, usable(nodes))
	}
}

func BenchmarkOutlier(b *testing.B) {
	b.Run("Record", func(b *testing.B) {
		b.ReportAllocs()
		n := fleet(must(b, outlier.Config{}), 10)[0]
		for b.Loop() {
			n.Record(0, resilience.Success)
		}
	})
	b.Run("RecordBad", func(b *testing.B) {
		b.ReportAllocs()
		n := fleet(must(b, outlier.Config{}), 10)[0]
		for b.Loop() {
			n.Record(0, resilience.Failure)
		}
	})
	b.Run("Usable", func(b *testing.B) {
		b.ReportAllocs()
		n := fleet(must(b, outlier.Config{}), 10)[0]
		for b.Loop() {
			n.Usable()
		}
	})
	for _, size := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint("Sweep/n=", size), func(b *testing.B) {
			b.ReportAllocs()
			d := must(b, outlier.Config{Interval: 1, MinRequests: 1})
			nodes := fleet(d, size)
			now := time.Duration(0)
			for b.Loop() {
				now++
				for _, n := range nodes {
					n.Record(now, resilience.Success)
				}
				d.Sweep(now)
			}
		})
	}
}
