package slowstart_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardd/shardd/resilience/slowstart"
)

// The field case: what share do nodes really get while they ramp, under the
// three kinds of weighted schedulers? These are the plainest form of each.

// scheduler picks by weights that change under it.
type scheduler interface {
	set(i int, w float64)
	pick() int
}

// smooth is smooth weighted round robin; a new weight leaves its state alone.
type smooth struct{ w, c []float64 }

func (s *smooth) set(i int, w float64) { s.w[i] = w }
func (s *smooth) pick() int {
	best, sum := 0, 0.
	for i, w := range s.w {
		s.c[i] += w
		sum += w
		if s.c[i] > s.c[best] {
			best = i
		}
	}
	s.c[best] -= sum
	return best
}

// deadline is earliest deadline first. A new weight rescales what is left of the
// turn: without that a node at 1 % would wait for a turn set at 1 %.
type deadline struct {
	w, due []float64
	now    float64
}

func (d *deadline) set(i int, w float64) {
	if d.w[i] == 0 {
		d.due[i] = d.now + rand.New(rand.NewPCG(uint64(i), 0)).Float64()/w // not all at once
	} else {
		d.due[i] = d.now + (d.due[i]-d.now)*d.w[i]/w
	}
	d.w[i] = w
}

func (d *deadline) pick() int {
	best := 0
	for i, due := range d.due {
		if due < d.due[best] {
			best = i
		}
	}
	d.now = d.due[best]
	d.due[best] += 1 / d.w[best]
	return best
}

// random draws by weight: what P2C does with weights when loads are equal.
type random struct {
	w   []float64
	rng *rand.Rand
}

func (r *random) set(i int, w float64) { r.w[i] = w }
func (r *random) pick() int {
	sum := 0.
	for _, w := range r.w {
		sum += w
	}
	x := r.rng.Float64() * sum
	for i, w := range r.w {
		if x -= w; x < 0 {
			return i
		}
	}
	return len(r.w) - 1
}

// counts runs 180 s at a rate, weights recomputed every 100 ms, and returns how
// many requests each of the new nodes got in each bucket of 10 s, and the
// expected number by the ramp; gap is the longest time without one in units of
// 1/(rate * share at its beginning). clock distorts what the ramps see.
func counts(p *slowstart.Policy, s scheduler, old, fresh, rate int, clock func(time.Duration) time.Duration) (got [][18]float64, want [18]float64, gap float64) {
	ramps := make([]*slowstart.Ramp, fresh)
	for i := range ramps {
		ramps[i] = p.Start(clock(0))
	}
	for i := range old {
		s.set(i, 1)
	}
	got = make([][18]float64, fresh)
	var last, share float64 // of the first fresh node
	factor := 0.
	for n := range 180 * rate {
		now := time.Duration(n) * sec / time.Duration(rate)
		if n%max(1, rate/10) == 0 {
			for i, r := range ramps {
				factor = r.Tick(clock(now))
				s.set(old+i, factor)
			}
		}
		expected := factor / (float64(old) + float64(fresh)*factor)
		want[n/(10*rate)] += expected
		if n == 0 {
			share = expected
		}
		if i := s.pick(); i >= old {
			got[i-old][n/(10*rate)]++
			if i == old {
				gap = max(gap, (now.Seconds()-last)*float64(rate)*share)
				last, share = now.Seconds(), expected
			}
		}
	}
	return got, want, gap
}

func schedulers(n int) map[string]scheduler {
	return map[string]scheduler{
		"smooth":   &smooth{w: make([]float64, n), c: make([]float64, n)},
		"deadline": &deadline{w: make([]float64, n), due: make([]float64, n)},
		"random":   &random{w: make([]float64, n), rng: rand.New(rand.NewPCG(1, 2))},
	}
}

// TestShares: in each bucket within 20 % of the ramp or 3 requests; never without
// a request for more than twice the time between two by its share; its fair
// share afterwards.
func TestShares(t *testing.T) {
	f := func(old, fresh int, c slowstart.Config, clock func(time.Duration) time.Duration) {
		for name, s := range schedulers(old + fresh) {
			rate := 100
			if name == "random" {
				if old > 1 {
					continue
				}
				rate = 10000 // chance is not the ramp: at 100, 3 requests would be one sigma
			}
			t.Run(fmt.Sprintf("%d+%d/%v/%v/%s", old, fresh, c.Min, c.Aggression, name), func(t *testing.T) {
				got, want, gap := counts(must(t, c), s, old, fresh, rate, clock)
				for i := range got {
					for b, g := range got[i] {
						if off := math.Abs(g - want[b]); off > .2*want[b] && off > 3 {
							t.Errorf("node %d, bucket %d: %v requests; want %.1f", i, b, g, want[b])
						}
					}
				}
				if name != "random" && gap > 2 {
					t.Errorf("no request for %.2f times 1/(rate*share); want at most 2", gap)
				}
			})
		}
	}
	straight := func(now time.Duration) time.Duration { return now }
	for _, least := range []float64{.01, .1} {
		for _, aggression := range []float64{1, 2} {
			c := slowstart.Config{Min: least, Aggression: aggression}
			f(1, 1, c, straight)
			f(130, 2, c, straight)
		}
	}
	f(1, 1, slowstart.Config{Min: .1, Aggression: 1}, func(now time.Duration) time.Duration {
		switch {
		case now < 20*sec:
			return now
		case now < 40*sec:
			return now + time.Hour
		}
		return now - time.Hour
	})
}

// TestJumpKeepsTheRamp compares with the ramp without jumps.
func TestJumpKeepsTheRamp(t *testing.T) {
	p := must(t, slowstart.Config{})
	r := p.Start(0)
	for now := time.Duration(0); now < 60*sec; now += sec / 10 {
		seen := now
		if now >= 20*sec {
			seen += time.Hour
		}
		if now >= 40*sec {
			seen -= 2 * time.Hour
		}
		f, want := r.Tick(seen), p.Factor(now)
		if math.Abs(f-want) > .2*want {
			t.Fatalf("at %v: %v; want %v within a fifth", now, f, want)
		}
	}
}
