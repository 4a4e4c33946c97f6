package sim

import (
	"math"

	"github.com/shardd/shardd/internal/splitmix"
)

// Dice is a stream of chance; its value is its state.
type Dice struct{ source splitmix.Source }

// NewDice returns stream number stream of a seed.
func NewDice(seed, stream uint64) *Dice {
	return &Dice{splitmix.Source(splitmix.Mix(seed*splitmix.Golden + splitmix.Mix(stream+1)))}
}

// Bits returns 64 random bits.
func (d *Dice) Bits() uint64 { return d.source.Next() }

// Below returns a number in [0, n), n > 0.
func (d *Dice) Below(n int) int { return int(d.source.Below(uint64(n))) }

// Unit returns a number in (0, 1).
func (d *Dice) Unit() float64 { return (float64(d.source.Next()>>11) + 0.5) * 0x1p-53 }

// Exp returns an exponential number with mean 1.
func (d *Dice) Exp() float64 { return -math.Log(d.Unit()) }

// Normal returns a normal number with mean 0 and variance 1 (Box and Muller).
func (d *Dice) Normal() float64 {
	return math.Sqrt(2*d.Exp()) * math.Cos(2*math.Pi*d.Unit())
}

// Dist draws from a distribution, in units.
type Dist func(*Dice) float64

// Exponential has the given mean; cv^2 = 1.
func Exponential(mean float64) Dist {
	return func(d *Dice) float64 { return mean * d.Exp() }
}

// Constant is always x; cv^2 = 0.
func Constant(x float64) Dist { return func(*Dice) float64 { return x } }

// Uniform lies between low and high.
func Uniform(low, high float64) Dist {
	return func(d *Dice) float64 { return low + (high-low)*d.Unit() }
}

// Erlang is the sum of k exponentials with the given mean in all; cv^2 = 1/k.
func Erlang(k int, mean float64) Dist {
	return func(d *Dice) float64 {
		sum := 0.0
		for range k {
			sum += d.Exp()
		}
		return sum * mean / float64(k)
	}
}

// Hyper is one of two exponentials with balanced means; cv2 >= 1 is its cv^2.
func Hyper(mean, cv2 float64) Dist {
	p := (1 + math.Sqrt((cv2-1)/(cv2+1))) / 2
	return func(d *Dice) float64 {
		if d.Unit() < p {
			return mean * d.Exp() / (2 * p)
		}
		return mean * d.Exp() / (2 * (1 - p))
	}
}

// LogNormal has the given mean and cv^2.
func LogNormal(mean, cv2 float64) Dist {
	sigma := math.Sqrt(math.Log1p(cv2))
	mu := math.Log(mean) - sigma*sigma/2
	return func(d *Dice) float64 { return math.Exp(mu + sigma*d.Normal()) }
}

// Pareto has the given mean and a tail of x^-alpha, alpha > 1.
func Pareto(mean, alpha float64) Dist {
	least := mean * (alpha - 1) / alpha
	return func(d *Dice) float64 { return least * math.Pow(d.Unit(), -1/alpha) }
}

// Choice draws from second with probability p, else from first.
func Choice(p float64, first, second Dist) Dist {
	return func(d *Dice) float64 {
		if d.Unit() < p {
			return second(d)
		}
		return first(d)
	}
}
