package shares

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestOf(t *testing.T) {
	got := Of([]int{1, 2, 3})
	want := Spread{Peak: 1.5, Least: .5, CV: math.Sqrt(1. / 6)}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Spread{}, Of([]float64(nil))); d != "" {
		t.Error(d)
	}
}

func TestWithout(t *testing.T) {
	if got := Without(.05, .04); math.Abs(got-.03) > 1e-12 {
		t.Errorf("Without(.05, .04) = %v", got)
	}
	if got := Without(.03, .04); got != 0 {
		t.Errorf("less than the noise: %v", got)
	}
	if got := Noise(11, 1000); math.Abs(got-.1) > 1e-12 {
		t.Errorf("Noise = %v", got)
	}
}

func TestMove(t *testing.T) {
	got := Move([]string{"a", "a", "b", "c"}, []string{"a", "x", "c", "c"}, "x")
	if d := cmp.Diff(Moved{Keys: .5, Needless: .25}, got); d != "" {
		t.Error(d)
	}
}
