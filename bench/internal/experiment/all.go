package experiment

import "github.com/shardd/shardd/bench/internal/plots"

// Picture is a plot of an experiment.
type Picture = plots.Plot

// Series is a curve of a Picture.
type Series = plots.Series

// All returns the experiments, in the order in which they are played.
func All() []*Experiment {
	return []*Experiment{
		bins(), fixed(), formulas(), homo(), stale(), hetero(), swrr(), twoHosts(), longtail(), queueing(), retry(), subsets(),
		slowBackend(), locality(), localityCurve(), clients(), sinkhole(), antagonist(), movement(), ringSize(),
		boundedLoad(), hotKeys(), affinity(), cacheFleet(), herd(),
	}
}

// Find returns the experiment of that name, nil if there is none.
func Find(name string) *Experiment {
	for _, x := range All() {
		if x.Name == name {
			return x
		}
	}
	return nil
}
