package ring_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shardd/shardd/ring"
)

// Law: over 64 sets of node names the mean cv of the exact shares is that of
// random points, and so is the peak.
func TestBalanceLaw(t *testing.T) {
	const sets = 64
	for _, c := range []struct{ nodes, points int }{{10, 160}, {100, 40}, {100, 160}, {1000, 40}} {
		if testing.Short() && c.nodes*c.points > 20_000 {
			continue
		}
		var cvs, peaks float64
		for s := range sets {
			nodes := map[string]uint32{}
			for i := range c.nodes {
				nodes[fmt.Sprintf("10.%d.0.%d:11211", s, i)] = 1
			}
			r, _ := set(t, uint32(c.points), nodes)
			cv, peak := spread(shares(r))
			cvs += cv / sets
			peaks += peak / sets
		}
		if want := ring.ExpectedCV(c.nodes, c.points); math.Abs(cvs/want-1) > 0.05 {
			t.Errorf("%d nodes of %d points: cv %.4f, want %.4f within 5 %%", c.nodes, c.points, cvs, want)
		}
		if want := ring.ExpectedPeak(c.nodes, c.points); math.Abs(peaks/want-1) > 0.02 {
			t.Errorf("%d nodes of %d points: peak %.4f, want %.4f within 2 %%", c.nodes, c.points, peaks, want)
		}
	}
}

// Law: the peaks of 64 sets of names lie where those of random points do.
func TestPeakLaw(t *testing.T) {
	const nodes, points, sets = 100, 160, 64
	random := make([]float64, 100)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range random {
		random[i] = randomPeak(rng, nodes, points)
	}
	slices.Sort(random)
	low, high := random[len(random)/20], random[len(random)*19/20]
	inside := 0
	for s := range sets {
		names := map[string]uint32{}
		for i := range nodes {
			names[fmt.Sprintf("rack%d-cache%03d", s, i)] = 1
		}
		r, _ := set(t, points, names)
		if _, peak := spread(shares(r)); low <= peak && peak <= high {
			inside++
		}
	}
	// 90 % are expected; 74 % is five standard deviations below that.
	if inside < sets*74/100 {
		t.Errorf("%d of %d peaks lie between %.3f and %.3f", inside, sets, low, high)
	}
}

func randomPeak(rng *rand.Rand, nodes, points int) float64 {
	type point struct {
		pos   uint64
		owner int
	}
	all := make([]point, nodes*points)
	for i := range all {
		all[i] = point{rng.Uint64(), i % nodes}
	}
	slices.SortFunc(all, func(a, b point) int {
		if a.pos < b.pos {
			return -1
		}
		return 1
	})
	part := make([]float64, nodes)
	last := all[len(all)-1].pos
	for _, p := range all {
		part[p.owner] += float64(p.pos-last) * 0x1p-64
		last = p.pos
	}
	_, peak := spread(part)
	return peak
}

// spread is the cv and the largest of shares over their mean.
func spread(shares []float64) (cv, peak float64) {
	n := float64(len(shares))
	for _, s := range shares {
		cv += (s*n - 1) * (s*n - 1) / n
		peak = max(peak, s*n)
	}
	return math.Sqrt(cv), peak
}

func TestExpectedOfFewNodes(t *testing.T) {
	for _, n := range []int{0, 1} {
		if cv, peak := ring.ExpectedCV(n, 160), ring.ExpectedPeak(n, 160); cv != 0 || peak != 1 {
			t.Errorf("%d nodes: cv %v, peak %v; want 0 and 1", n, cv, peak)
		}
	}
}
