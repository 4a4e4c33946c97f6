package nearest

import (
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// walk is what Append must agree with.
func walk(circle []uint16, shift, at, n int) (order []int) {
	for i := range circle {
		o := int(circle[(at+i)%len(circle)]) - shift
		if !slices.Contains(order, o) && len(order) < n {
			order = append(order, o)
		}
	}
	return order
}

func TestAppendIsTheWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owners := rapid.IntRange(1, 40).Draw(t, "owners")
		shift := rapid.IntRange(0, 1).Draw(t, "shift")
		circle := rapid.SliceOfN(rapid.Uint16Range(uint16(shift), uint16(owners-1+shift)), 1, 200).Draw(t, "circle")
		var x Index
		for range 5 {
			at := rapid.IntRange(0, len(circle)-1).Draw(t, "at")
			all := walk(circle, shift, at, owners)
			n := rapid.IntRange(1, len(all)).Draw(t, "n")
			had := rapid.IntRange(0, n).Draw(t, "found by walking")
			dst := append([]int{-5, 3}, all[:had]...)
			got := x.Append(dst, 2, n, at, circle, shift, owners)
			if !slices.Equal(got[2:], all[:n]) || got[0] != -5 || got[1] != 3 {
				t.Fatalf("from %d the first %d are %v, want %v", at, n, got, all[:n])
			}
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	circle := []uint16{0, 0, 0, 1, 0, 2, 0}
	var x Index
	var wg sync.WaitGroup
	for at := range 7 {
		wg.Go(func() {
			if got, want := x.Append(nil, 0, 3, at, circle, 0, 3), walk(circle, 0, at, 3); !slices.Equal(got, want) {
				t.Errorf("from %d: %v, want %v", at, got, want)
			}
		})
	}
	wg.Wait()
}

func TestFewDoNotAllocate(t *testing.T) {
	circle := slices.Repeat([]uint16{0}, 10_000)
	circle[77], circle[5000] = 1, 2
	var x Index
	dst := x.Append(make([]int, 0, 3), 0, 3, 6000, circle, 0, 3)
	if got := testing.AllocsPerRun(10, func() { dst = x.Append(dst[:0], 0, 3, 6000, circle, 0, 3) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
