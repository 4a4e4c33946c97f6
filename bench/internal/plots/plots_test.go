package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
)

func TestSVG(t *testing.T) {
	p := Plot{Title: "cv", X: "points", Y: "cv", LogX: true, LogY: true, Series: []Series{
		{Name: "measured", X: []float64{10, 100}, Y: []float64{.3, .1}},
		{Name: "the law", X: []float64{10, 100}, Y: []float64{.31, .1}, Law: true},
		{Name: "others", X: []float64{10, 100}, Y: []float64{.5, .2}, Faint: true},
	}}
	got, err := p.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"measured", "the law", "others", "points"} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("no %q in the plot", want)
		}
	}
	again, err := p.SVG()
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("drawn again it differs (%v)", err)
	}
}

func TestRefused(t *testing.T) {
	f := func(s Series, p Plot) {
		t.Helper()
		p.Series = []Series{s}
		if _, err := p.SVG(); err == nil {
			t.Errorf("%+v was drawn", s)
		}
	}
	f(Series{Name: "empty"}, Plot{})
	f(Series{Name: "uneven", X: []float64{1}, Y: []float64{1, 2}}, Plot{})
	f(Series{Name: "zero", X: []float64{0}, Y: []float64{1}}, Plot{LogX: true})
	f(Series{Name: "negative", X: []float64{1}, Y: []float64{-1}}, Plot{LogY: true})
}

func TestTicks(t *testing.T) {
	labels := func(ticks []plot.Tick) (list []string) {
		for _, k := range ticks {
			if k.Label != "" {
				list = append(list, k.Label)
			}
		}
		return list
	}
	f := func(ticks []plot.Tick, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, labels(ticks)); d != "" {
			t.Error(d)
		}
	}
	f(linear{}.Ticks(1.0002, 1.054), "1.01", "1.02", "1.03", "1.04", "1.05")
	f(linear{}.Ticks(.9, 14.4), "2", "4", "6", "8", "10", "12", "14")
	f(linear{}.Ticks(3, 3), "3")
	f(logarithmic{}.Ticks(.028, .3), "0.05", "0.1", "0.2")
	f(logarithmic{}.Ticks(10, 10000), "10", "100", "1000", "10000")
}

func TestRoomForTheLegend(t *testing.T) {
	ten := make([]Series, 10)
	if got := (Plot{Series: ten}).roomy(1, 3); got != 5 {
		t.Errorf("ten entries over 1 to 3: up to %v, want 5", got)
	}
	if got := (Plot{Series: ten, LogY: true}).roomy(1, 100); math.Abs(got-10000) > 1e-6 {
		t.Errorf("ten entries over 1 to 100: up to %v, want 10000", got)
	}
}
