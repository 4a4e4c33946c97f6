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

func TestMeasureCountsAllocations(t *testing.T) {
	keys := Keys(2000)
	f, err := Measure(keys, func(keys []string) int {
		sum := 0
		for _, k := range keys {
			sum += len(append([]byte(nil), k+k+k...))
		}
		return sum
	}, 1)
	if err != nil || f.Ratio <= 0 || f.Allocs < 1 {
		t.Errorf("Measure = %+v, %v; want a ratio and at least one allocation a key", f, err)
	}
	if f, err := Measure(keys, Floor(), 1); err != nil || f.Allocs > .01 {
		t.Errorf("the floor: %+v, %v; want no allocations", f, err)
	}
	if _, err := Measure(keys, func([]string) int { return 0 }, 1); err == nil {
		t.Error("a pass without names was taken")
	}
}

// The floor against itself: what the ratio's own noise is.
func BenchmarkRatioFloor(b *testing.B) {
	Ratio(b, Keys(NumKeys), Floor())
}
