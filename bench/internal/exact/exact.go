// Package exact computes those figures of the algorithms that are the same in
// every run and on every machine: how evenly they spread keys, what a change
// moves, and the laws that both follow. Shares are of the whole key space and
// not of a sample, unless a table says so: with a million keys, a perfectly
// even mapping of 1000 nodes already shows a peak of 1.10.
package exact

import (
	"math"
	"strconv"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/internal/floorbench"
)

// Block is a table that stands on a page.
type Block struct {
	// Page is the file's name, Name that of the block in it.
	Page, Name string
	// Slow says that it takes more than about half a second.
	Slow bool
	// Table computes it.
	Table func() (page.Table, error)
}

// Blocks returns everything that this package computes for pages.
func Blocks() []Block {
	return []Block{
		{"ring.md", "balance", false, RingBalance},
		{"ring.md", "names", true, RingNames},
		{"ring.md", "paper", true, RingPaper},
		{"keyed-load.md", "probes", true, BoundedProbes},
		{"ring.md", "movement", true, movement(ringSpecs())},
		{"jump.md", "balance", true, JumpBalance},
		{"jump.md", "steps", true, JumpSteps},
		{"jump.md", "movement", false, movement(jumpSpecs())},
		{"jump.md", "traps", true, JumpTraps},
		{"jump.md", "holes", true, JumpHoles},
		{"papers.md", "large", true, LargeRing},
		{"papers.md", "fill", true, BoundedFill},
		{"papers.md", "smallcache", true, SmallCache},
		{"rendezvous.md", "balance", true, RendezvousBalance},
		{"rendezvous.md", "table", false, RendezvousTable},
		{"rendezvous.md", "movement", false, movement(rendezvousSpecs())},
		{"rendezvous.md", "changes", false, RendezvousChanges},
		{"maglev.md", "balance", false, MaglevBalance},
		{"maglev.md", "movement", true, MaglevMovement},
		{"maglev.md", "size", true, MaglevSize},
		{"maglev.md", "failures", false, MaglevFailures},
		{"maglev.md", "seed", true, MaglevSeed},
		{"slots.md", "balance", false, SlotsBalance},
		{"slots.md", "movement", false, movement(slotsSpecs())},
		{"slots.md", "zones", false, SlotsZones},
	}
}

// sizes are the numbers of nodes of most tables.
var sizes = [...]int{10, 100, 1000}

// names returns n names in ascending order, the same as in the timed tables.
func names(n int) []string { return floorbench.Names(n) }

// ones returns n weights of 1.
func ones(n int) []uint32 { return floorbench.Weights(n) }

// f formats x with that many digits after the point.
func f(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

// count formats a number of nodes, keys or entries.
func count(n int) string { return strconv.Itoa(n) }

// percent formats a share.
func percent(x float64, digits int) string { return f(100*x, digits) + " %" }

// harmonic is 1 + 1/2 + ... + 1/n.
func harmonic(n int) float64 {
	sum := 0.
	for i := n; i > 0; i-- {
		sum += 1 / float64(i)
	}
	return sum
}

// mean returns the mean of x.
func mean(x []float64) float64 {
	sum := 0.
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// multinomialPeak is about the mean of the largest of n counts, as a multiple
// of the mean count, when keys fall on n nodes at random: the normal quantile
// at 1 - e^(-Euler's constant)/n, times the deviation of a count.
func multinomialPeak(n, keys int) float64 {
	const euler = 0.5772156649015329
	z := math.Sqrt2 * math.Erfinv(1-2*math.Exp(-euler)/float64(n))
	return 1 + z*math.Sqrt(float64(n-1)/float64(keys))
}
