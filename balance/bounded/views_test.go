package bounded_test

import (
	"math"
	"testing"
	"time"

	"github.com/shardd/shardd/balance/bounded"
)

func TestReported(t *testing.T) {
	g, s := newSet(t, bounded.Options{View: bounded.Reported}, 1.25, 1, 1)
	s.Admit(0, 4)
	s.Node(0).Report(50, 4) // 50 of others, and our 4
	if got := s.Load(0); got != 54 || g.Total() != 54 {
		t.Fatalf("load %d, total %d; want 54", got, g.Total())
	}
	if s.Admit(0, 1) {
		t.Fatal("54 of 54 is not over 1.25 times the half")
	}
	s.Node(0).Release(4)
	if got := s.Load(0); got != 50 {
		t.Fatalf("load %d after our own is gone, want 50", got)
	}
	s.Node(0).Report(-3, 0)
	if got := s.Load(0); got != 0 {
		t.Fatalf("load %d of a report below nothing", got)
	}
	s.Node(0).Count(1)
	s.Node(0).Report(100, 1)
	s.Fade(1) // it has just reported
	if got := s.Node(0).Others(); got != 100 {
		t.Fatalf("a fresh report faded to %d", got)
	}
	for range 100 {
		s.Fade(0.01)
	}
	if a, b := s.Node(0).Others(), s.Node(1).Others(); a-b > 2 || b-a > 2 {
		t.Fatalf("loads %d and %d did not meet", a, b)
	}
	if got := g.Total(); got != s.Load(0)+s.Load(1) {
		t.Fatalf("total %d is not the sum %d", got, s.Load(0)+s.Load(1))
	}
}

func TestLeastForceAndSample(t *testing.T) {
	_, s := newSet(t, bounded.Options{}, 1, 1, 2, 0)
	if s.Least(nil) != -1 || s.Least([]int{2}) != -1 {
		t.Fatal("the least of nobody")
	}
	s.Node(0).Force(3)
	s.Node(1).Force(4)
	if got := s.Least([]int{0, 1, 2}); got != 1 {
		t.Fatalf("least is %d; 4/2 is less than 3/1", got)
	}
	// Caps are ceil(7/3) = 3 and ceil(14/3) = 5.
	s.Node(0).Force(1) // 4 of 8: cap 3
	s.Sample(time.Second)
	if a, b := s.Node(0).Stats(), s.Node(1).Stats(); a.OverFor != time.Second || b.OverFor != 0 || a.Over != 2 {
		t.Fatalf("over %v and %v, %d forced", a.OverFor, b.OverFor, a.Over)
	}
	if got := s.Cap(0, 1); got != 3 {
		t.Fatalf("cap %d, want 3", got)
	}
}

func TestSpills(t *testing.T) {
	g := bounded.NewGroup(bounded.Options{})
	n := g.NewNode()
	f := func(share float64, chance uint32, want bool) {
		t.Helper()
		n.SetSpill(share)
		if n.Spills(chance) != want {
			t.Errorf("share %v, chance %d: not %v", share, chance, want)
		}
	}
	f(0, 0, false)
	f(1, math.MaxUint32-1, true)
	f(0.5, 1<<31-1<<10, true)
	f(0.5, 1<<31+1<<10, false)
	f(-1, 0, false)
	f(7, math.MaxUint32-1, true)
}

// The control loop turns away what is above the target, of its own requests alone,
// and lets go of it when the load is gone.
func TestSpillLoop(t *testing.T) {
	s := bounded.Spill{Factor: 1.5}
	weights := []float64{1, 1, 2, 0}
	shares := make([]float64, 4)
	offered := []float64{100, 10, 20, 0}
	for range 40 {
		own, all, away := make([]float64, 4), make([]float64, 4), 0.0
		for i := range offered {
			own[i] = offered[i] * (1 - shares[i])
			away += offered[i] * shares[i]
		}
		for i := range all { // what is turned away goes to the others by weight
			all[i] = own[i] + away*weights[i]/4
		}
		shares = s.Next(shares, own, all, weights)
	}
	// 130 in all, a share of 32.5, the target 1.25 times that.
	if load := offered[0]*(1-shares[0]) + (offered[0]*shares[0])/4; math.Abs(load-1.25*32.5) > 1 || shares[1] != 0 || shares[2] != 0 {
		t.Fatalf("shares %v, load %v", shares, load)
	}
	for range 60 {
		shares = s.Next(shares, []float64{5 * (1 - shares[0]), 5, 10, 0}, []float64{5, 5, 10, 0}, weights)
	}
	if shares[0] > 0.01 {
		t.Fatalf("shares %v though nobody is over", shares)
	}
	for _, x := range s.Next([]float64{math.NaN(), 2}, []float64{math.Inf(1), 1}, []float64{1, math.NaN()}, []float64{0, 0}) {
		if !(x >= 0 && x <= 1) {
			t.Fatalf("share %v of nonsense", x)
		}
	}
}
