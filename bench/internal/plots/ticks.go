package plots

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// linear marks an axis at multiples of 1, 2 or 5 times a power of ten. gonum's
// own marks are rounded when they are labelled: 1.005 reads 1.01.
type linear struct{}

// Ticks returns four to nine marks from low to high.
func (linear) Ticks(low, high float64) []plot.Tick {
	if !(high > low) {
		return []plot.Tick{{Value: low, Label: label(low)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, k := range [...]float64{5, 2} {
		if (high-low)/(k*step) >= 4 {
			step *= k
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-12); i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label(i * step)})
	}
	return ticks
}

// logarithmic marks 1 to 9 times each power of ten, and labels the powers; 2
// and 5 times them as well if there are fewer than three powers.
type logarithmic struct{}

func (logarithmic) Ticks(low, high float64) []plot.Tick {
	few := math.Log10(high/low) < 2.5
	var ticks []plot.Tick
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for k := 1.; k < 10; k++ {
			v := k * power
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if k == 1 || few && (k == 2 || k == 5) {
				t.Label = label(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// label writes x with up to six digits.
func label(x float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
