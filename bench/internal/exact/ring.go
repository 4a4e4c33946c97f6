package exact

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/shares"
	"github.com/shardd/shardd/ring"
)

// RingBalance is the spread of rings of equal nodes beside its law.
func RingBalance() (page.Table, error) {
	t := page.Table{Header: []string{"points a node", "N", "peak", "least", "cv", "law: cv", "law: mean peak"}}
	for _, v := range []int{40, 160, 1000} {
		for _, n := range sizes {
			s, err := ringSpread(names(n), v)
			if err != nil {
				return t, err
			}
			t.Add(count(v), count(n), f(s.Peak, 3), f(s.Least, 3), f(s.CV, 4), f(ring.ExpectedCV(n, v), 4), f(ring.ExpectedPeak(n, v), 3))
		}
	}
	return t, nil
}

// nameSets is how many sets of names RingNames and RingCurve look at.
const nameSets = 64

// RingNames is the spread over 64 sets of node names.
func RingNames() (page.Table, error) {
	t := page.Table{Header: []string{"points a node", "N", "mean cv", "law: cv", "cv / law", "mean peak", "law: peak", "peaks, 5 to 95 %"}}
	for _, c := range []struct{ v, n int }{{40, 10}, {40, 100}, {160, 10}, {160, 100}, {160, 1000}, {1000, 10}, {1000, 100}} {
		cvs, peaks, err := nameSpreads(c.n, c.v)
		if err != nil {
			return t, err
		}
		slices.Sort(peaks)
		law := ring.ExpectedCV(c.n, c.v)
		t.Add(count(c.v), count(c.n), f(mean(cvs), 4), f(law, 4), f(mean(cvs)/law, 3), f(mean(peaks), 3), f(ring.ExpectedPeak(c.n, c.v), 3),
			f(peaks[nameSets/20], 3)+" to "+f(peaks[nameSets*19/20], 3))
	}
	return t, nil
}

// Point is one place on a curve.
type Point struct{ X, Y float64 }

// RingCurve is the mean cv of 100 nodes over sets of names, by points a node,
// and the law beside it.
func RingCurve() (measured, law []Point, err error) {
	for v := 10; v <= 1280; v *= 2 {
		cvs, _, err := nameSpreads(100, v)
		if err != nil {
			return nil, nil, err
		}
		measured = append(measured, Point{float64(v), mean(cvs)})
		law = append(law, Point{float64(v), ring.ExpectedCV(100, v)})
	}
	return measured, law, nil
}

func nameSpreads(n, v int) (cvs, peaks []float64, err error) {
	for set := range nameSets {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf("set%02d-node%05d", set, i)
		}
		s, err := ringSpread(ids, v)
		if err != nil {
			return nil, nil, err
		}
		cvs, peaks = append(cvs, s.CV), append(peaks, s.Peak)
	}
	return cvs, peaks, nil
}

// ringSpread adds up the arcs, in units of 2^-64 of the key space.
func ringSpread(ids []string, v int) (shares.Spread, error) {
	owned, err := ringShares(ids, v)
	if err != nil {
		return shares.Spread{}, err
	}
	return shares.Of(owned), nil
}

// ringShares returns each node's share of the ring; 1 is the mean.
func ringShares(ids []string, v int) ([]float64, error) {
	r, err := ring.New(ids, ones(len(ids)), uint32(v))
	if err != nil {
		return nil, err
	}
	owned := make([]float64, len(ids))
	last, _ := r.Point(r.NumPoints() - 1)
	for place, owner := range r.Points() {
		owned[owner] += float64(place-last) / (1 << 64) * float64(len(ids)) // wraps at the first point
		last = place
	}
	return owned, nil
}
