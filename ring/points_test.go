package ring_test

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/shardd/shardd/ring"
	"pgregory.net/rapid"
)

// lower is the rule itself: the first point not before h, wrapping.
func lower(points []ring.Point, h uint64) int {
	for _, p := range points {
		if p.Place >= h {
			return int(p.Owner)
		}
	}
	if len(points) == 0 {
		return -1
	}
	return int(points[0].Owner)
}

// Lookups on any points obey the rule, on the points themselves, beside them and
// where many stand close together.
func TestFromPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 40), rapid.Map(rapid.Uint64Range(0, 1<<32-1), func(x uint64) uint64 { return x << 32 }))
		places := rapid.SliceOfN(place, 0, 60).Draw(t, "places")
		points := make([]ring.Point, len(places))
		for i, p := range places {
			points[i] = ring.Point{Place: p, Owner: uint16(rapid.IntRange(0, 5).Draw(t, "owner"))}
		}
		slices.SortStableFunc(points, func(a, b ring.Point) int { return cmp.Compare(a.Place, b.Place) })
		r, err := ring.FromPoints(6, points)
		if err != nil {
			t.Fatal(err)
		}
		if r.Len() != 6 || r.NumPoints() != len(points) {
			t.Fatalf("%d nodes, %d points", r.Len(), r.NumPoints())
		}
		for _, p := range points {
			for _, h := range []uint64{p.Place - 1, p.Place, p.Place + 1} {
				checkPoint(t, r, points, h)
			}
		}
		checkPoint(t, r, points, rapid.Uint64().Draw(t, "h"))
	})
}

func checkPoint(t *rapid.T, r *ring.Ring, points []ring.Point, h uint64) {
	t.Helper()
	want := lower(points, h)
	if got := r.Locate(h); got != want {
		t.Fatalf("Locate(%#x) = %d, want %d", h, got, want)
	}
	if list := r.AppendReplicas(nil, h, 6); len(list) != r.Owners() || want >= 0 && list[0] != want {
		t.Fatalf("replicas of %#x: %v, owner %d of %d", h, list, want, r.Owners())
	}
}

func TestFromPointsRefuses(t *testing.T) {
	f := func(n int, points []ring.Point, want error) {
		t.Helper()
		if _, err := ring.FromPoints(n, points); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	f(ring.MaxNodes+1, nil, ring.ErrTooManyNodes)
	f(1, make([]ring.Point, ring.MaxPoints+1), ring.ErrTooManyPoints)
	f(1, []ring.Point{{Place: 2}, {Place: 1}}, ring.ErrInput)
	f(1, []ring.Point{{Owner: 1}}, ring.ErrInput)
	r, err := ring.FromPoints(1, []ring.Point{{Place: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Update([]string{"a"}, []uint32{1}); !errors.Is(err, ring.ErrInput) {
		t.Errorf("Update of a ring of points: %v", err)
	}
}
