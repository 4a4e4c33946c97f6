package pickers

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardd/shardd/bench/internal/peertable"
)

// kept makes what is stored in it escape to the heap.
var kept atomic.Pointer[int64]

func TestMeasure(t *testing.T) {
	failing := Subject{Name: "failing", New: func(int) (Loop, func(), error) { return nil, nil, errors.New("cannot") }}
	allocating := Subject{Name: "allocating", Clock: "no", New: func(int) (Loop, func(), error) {
		return func(_ uint64, requests, _ int) {
			for range requests {
				kept.Store(new(int64))
			}
		}, none, nil
	}}
	c := Config{Pairs: 1, Pass: time.Millisecond, Rounds: 200, Round: 20 * time.Microsecond, Work: time.Microsecond}
	told := 0
	got := Measure([]Subject{failing, allocating}, []int{10}, c, func(peertable.Picker) { told++ })
	if len(got) != 2 || told != 2 {
		t.Fatalf("%d rows, told of %d", len(got), told)
	}
	if got[0].Left != "cannot" {
		t.Errorf("left out because of %q", got[0].Left)
	}
	if p := got[1]; p.Allocs != 1 || p.Left != "" || p.Pick <= 0 || p.Ratio <= 0 || p.Two < 0 || p.Worked < 0 {
		t.Errorf("figures: %+v", p)
	}
}

func TestSizes(t *testing.T) {
	f := func(only int, asked, want []int) {
		t.Helper()
		if got := (Subject{Only: only}).sizes(asked); !slices.Equal(got, want) {
			t.Errorf("only %d of %v: %v, want %v", only, asked, got, want)
		}
	}
	f(0, []int{10, 100}, []int{10, 100})
	f(1024, []int{10, 1000}, []int{1024})
	f(1024, []int{10, 100}, nil)
}

func TestTogether(t *testing.T) {
	f := func(begunA, endA, begunB, endB int64, want bool) {
		t.Helper()
		var a, b lane
		a.begun.Store(begunA)
		a.end.Store(endA)
		b.begun.Store(begunB)
		b.end.Store(endB)
		if d, ok := together(&a, &b); ok != want || d != time.Duration(max(endA, endB)-min(begunA, begunB)) {
			t.Errorf("together(%d-%d, %d-%d) = %v, %v", begunA, endA, begunB, endB, d, ok)
		}
	}
	f(0, 100_000, 500, 101_000, true)
	f(0, 100_000, 5_000, 101_000, false)
	f(0, 100_000, 500, 190_000, false)
}
