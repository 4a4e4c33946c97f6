package splitmix_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/splitmix"
)

// The first values for seed 1234567 as published with the reference C code by
// Sebastiano Vigna (and used by Rosetta Code, "Pseudo-random numbers/Splitmix64").
func TestReferenceValues(t *testing.T) {
	s := splitmix.Source(1234567)
	got := make([]uint64, 5)
	for i := range got {
		got[i] = s.Next()
	}
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("sequence (-want +got):\n%s", d)
	}
}

func TestBelowAndShuffle(t *testing.T) {
	s := splitmix.Source(1)
	for range 1000 {
		if v := s.Below(7); v >= 7 {
			t.Fatalf("Below(7) = %d", v)
		}
	}
	x := []int{0, 1, 2, 3, 4, 5, 6, 7}
	splitmix.Shuffle(&s, x)
	seen := make([]bool, len(x))
	for _, v := range x {
		seen[v] = true
	}
	for v, ok := range seen {
		if !ok {
			t.Errorf("shuffle lost %d: %v", v, x)
		}
	}
}
