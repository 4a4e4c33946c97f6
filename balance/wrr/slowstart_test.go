package wrr

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

// ramp is Envoy's slow start: the part of its weight that a node has at an age.
func ramp(age, window time.Duration, least, aggression float64) float64 {
	if age >= window {
		return 1
	}
	t := float64(max(age, time.Millisecond)) / float64(window)
	return max(least, math.Pow(t, 1/aggression))
}

// warmup is a fleet of old nodes and two new ones whose weights rise; the second
// leaves at 20 s and comes back, anew, at 25 s.
type warmup struct {
	t                 *testing.T
	old               int
	least, aggression float64
	nodes             []*balance.Node
	picker            balance.Picker
}

const warmWindow = 60 * time.Second

func (w *warmup) weight(age time.Duration) float64 {
	return ramp(age, warmWindow, w.least, w.aggression)
}

// members returns who is there at now; the new ones come last.
func (w *warmup) members(now time.Duration) (members []balance.Member, total float64) {
	for _, n := range w.nodes[:w.old] {
		members = append(members, balance.Member{Node: n, Weight: 1})
	}
	members = append(members, balance.Member{Node: w.nodes[w.old], Weight: w.weight(now)})
	switch {
	case now < 20*time.Second:
		members = append(members, balance.Member{Node: w.nodes[w.old+1], Weight: w.weight(now)})
	case now >= 25*time.Second:
		members = append(members, balance.Member{Node: w.nodes[w.old+2], Weight: w.weight(now - 25*time.Second)})
	}
	for _, m := range members {
		total += m.Weight
	}
	return members, total
}

func (w *warmup) publish(now time.Duration, make func(*balance.Set) (balance.Picker, error)) float64 {
	members, total := w.members(now)
	set, err := balance.NewSet(members)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.picker == nil {
		w.picker, err = make(set)
	} else {
		w.picker, err = w.picker.Next(set)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return total
}

// run sends 100 requests a second for 180 s and makes new weights every 100 ms.
// It returns for each 10 s the requests that the first new node got, and those it
// should have got, and the longest time that it got none, in parts of what its
// share allows.
func (w *warmup) run(make func(*balance.Set) (balance.Picker, error)) (got, want [18]float64, drought float64) {
	since := 0.0 // expected requests since the last one
	share := 0.0
	for k := range 18_000 {
		now := time.Duration(k) * 10 * time.Millisecond
		if k%10 == 0 {
			share = w.weight(now) / w.publish(now, make)
		}
		want[k/1000] += share
		since += share
		tk, err := w.picker.Pick(now, uint64(k), nil)
		if err != nil {
			w.t.Fatal(err)
		}
		if tk.Node() == w.nodes[w.old] {
			got[k/1000]++
			drought, since = max(drought, since), 0
		}
		tk.Done(now+time.Millisecond, balance.Outcome{Result: balance.Success})
	}
	return got, want, max(drought, since)
}

// TestSlowStart: weights that rise in small steps give a new node its rising
// share, at once and without bursts, though its turn is never due at the weights
// it had at first (envoyproxy/envoy issues 19526 and 29259), and another node
// that flaps changes nothing of that.
func TestSlowStart(t *testing.T) {
	if balancetest.RaceEnabled {
		t.Skip("long, and without concurrency")
	}
	policies := map[string]struct {
		make   func(*balance.Set) (balance.Picker, error)
		random bool
	}{
		"smooth": {make: func(s *balance.Set) (balance.Picker, error) { return NewSmooth(s, SmoothConfig{}) }},
		"edf":    {make: func(s *balance.Set) (balance.Picker, error) { return NewEDF(s), nil }},
		"stride": {make: func(s *balance.Set) (balance.Picker, error) { return NewStride(s, 0), nil }},
		"weighted-least": {make: func(s *balance.Set) (balance.Picker, error) {
			return NewWeightedLeast(s, WeightedLeastConfig{})
		}, random: true}, // once all weights are equal
		"random": {make: func(s *balance.Set) (balance.Picker, error) { return balance.NewRandom(s), nil }, random: true},
		"p2c":    {make: func(s *balance.Set) (balance.Picker, error) { return balance.NewP2C(s, nil) }, random: true},
	}
	for name, policy := range policies {
		for _, old := range []int{1, 130} {
			for _, least := range []float64{0.01, 0.1} {
				for _, aggression := range []float64{1, 2} {
					t.Run(fmt.Sprintf("%s/%d+2/%v/%v", name, old, least, aggression), func(t *testing.T) {
						w := &warmup{t: t, old: old, least: least, aggression: aggression}
						for i := range old + 3 {
							w.nodes = append(w.nodes, balance.NewNode(fmt.Sprint(i), 0))
						}
						got, want, drought := w.run(policy.make)
						for k := range got {
							room := max(3, want[k]/5)
							if policy.random {
								room = max(room, 4*math.Sqrt(want[k]))
							}
							if math.Abs(got[k]-want[k]) > room {
								t.Errorf("seconds %d to %d: %v requests, the ramp gives %.1f", 10*k, 10*k+9, got[k], want[k])
							}
						}
						if !policy.random && drought > 2 {
							t.Errorf("no request for %.1f times as long as its share allows", drought)
						}
					})
				}
			}
		}
	}
}
