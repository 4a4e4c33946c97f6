package theory

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v +- %v", what, got, want, tolerance)
	}
}

func TestSupermarket(t *testing.T) {
	near(t, "s_4, d = 2", Tail(.9, 2, 4), .205891, 1e-6)
	near(t, "s_6, d = 2", Tail(.9, 2, 6), .001310, 1e-6)
	near(t, "T_1", Sojourn(.9, 1), 10, 1e-12)
	near(t, "T_2", Sojourn(.9, 2), 2.6141, 1e-4)
	near(t, "T_3", Sojourn(.9, 3), 2.0279, 1e-4)
}

// TestFromEmpty: the equations end where the formula says.
func TestFromEmpty(t *testing.T) {
	list := FromEmpty(.9, 2, 20, 10)
	last := list[len(list)-1]
	for i := 1; i < 7; i++ {
		near(t, "s_i", last[i], Tail(.9, 2, i), 1e-4)
	}
	near(t, "at 0", list[0][1], 0, 0)
}
