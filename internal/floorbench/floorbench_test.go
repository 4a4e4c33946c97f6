package floorbench

import "testing"

func TestKeysAreDistinctAndSized(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys(20000) {
		if len(k) != KeySize || seen[k] {
			t.Fatalf("key %q: length %d, seen before: %v", k, len(k), seen[k])
		}
		seen[k] = true
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median of three = %v, want 2", got)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median of four = %v, want 2.5", got)
	}
}

// The floor against itself: what the ratio's own noise is.
func BenchmarkRatioFloor(b *testing.B) {
	Ratio(b, Keys(NumKeys), Floor())
}
