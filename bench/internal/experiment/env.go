package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Params are what a user may set; each experiment takes those that it names in
// Experiment.Uses.
type Params struct {
	N        []int     // servers, bins or clients, as the experiment says
	Lambda   []float64 // load a server, 0 to 1
	T        []float64 // age of loads, in units
	Tau      []float64 // decay of latency estimates, in units
	M        []int     // clients
	C        []float64 // load bound
	Policies []string
	Seeds    int     // runs of which the median is taken
	Seed     uint64  // of the first run
	Units    float64 // window
}

// Env is what an experiment is run with.
type Env struct {
	Params
	// Quick asks for shorter runs, whose checks have twice the tolerance.
	Quick bool
	// FromEmpty is fixed's variant.
	FromEmpty bool
	// Workers is how many runs are played at once; 0 means as many as there are
	// processors. The figures do not depend on it.
	Workers int
	// Progress is told how many of how many runs are done, concurrently; nil is
	// nobody.
	Progress func(done, total int)

	defaults Params
}

// Experiment is one set-up.
type Experiment struct {
	Name  string
	Short string
	// Uses names the parameters that count: n lambda T tau m c policies seeds units.
	Uses []string
	// Defaults are the set-up's values.
	Defaults Params
	// Run plays it and returns the rows, with checks where the set-up is that of
	// the expected values.
	Run func(ctx context.Context, e *Env) ([]Row, error)
	// Page is the page of docs/algorithms that has the rows, in the block "sim:" and
	// the name.
	Page string
	// Plot draws what the rows show; nil is nothing to draw.
	Plot func(rows []Row) map[string]Picture
}

// ErrParam says that a parameter cannot be used.
var ErrParam = errors.New("experiment: bad parameter")

// Play runs x: zero parameters of e are x's defaults.
func (x *Experiment) Play(ctx context.Context, e Env) ([]Row, error) {
	e.defaults = x.Defaults
	e.fill()
	if err := e.check(); err != nil {
		return nil, err
	}
	rows, err := x.Run(ctx, &e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.Name, err)
	}
	for i := range rows {
		rows[i].Experiment = x.Name
		if e.Quick {
			for k := range rows[i].Checks {
				rows[i].Checks[k] = rows[i].Checks[k].relax()
			}
		}
	}
	return rows, nil
}

func (e *Env) fill() {
	d := e.defaults
	orList(&e.N, d.N)
	orList(&e.Lambda, d.Lambda)
	orList(&e.T, d.T)
	orList(&e.Tau, d.Tau)
	orList(&e.M, d.M)
	orList(&e.C, d.C)
	orList(&e.Policies, d.Policies)
	if e.Seeds == 0 {
		e.Seeds = max(1, d.Seeds)
	}
	if e.Seed == 0 {
		e.Seed = 1
	}
	if e.Units == 0 {
		e.Units = d.Units
	}
	if e.Workers == 0 {
		e.Workers = runtime.GOMAXPROCS(0)
	}
}

func orList[T any](list *[]T, def []T) {
	if len(*list) == 0 {
		*list = def
	}
}

func (e *Env) check() error {
	for _, n := range slices.Concat(e.N, e.M) {
		if n < 1 || n > 10_000_000 {
			return fmt.Errorf("%w: %d: want 1 to 10,000,000", ErrParam, n)
		}
	}
	for _, x := range e.Lambda {
		if !(x > 0 && x < 10) {
			return fmt.Errorf("%w: lambda %v: want more than 0", ErrParam, x)
		}
	}
	for _, x := range slices.Concat(e.T, e.Tau, e.C, []float64{e.Units}) {
		if !(x >= 0 && x < 1e8) {
			return fmt.Errorf("%w: %v: want 0 or more, less than 1e8", ErrParam, x)
		}
	}
	if e.Seeds < 1 || e.Seeds > 10_000 {
		return fmt.Errorf("%w: %d seeds: want 1 to 10,000", ErrParam, e.Seeds)
	}
	return nil
}

// window returns the length of a run in units; quick is that of quick runs, 0 is
// no other.
func (e *Env) window(quick float64) float64 {
	if e.Quick && quick > 0 && e.Units == e.defaults.Units {
		return quick
	}
	return e.Units
}

// seeds returns the number of runs; quick is that of quick runs.
func (e *Env) seeds(quick int) int {
	if e.Quick && e.Seeds == e.defaults.Seeds {
		return quick
	}
	return e.Seeds
}

// each calls f for 0 to n-1 on Workers goroutines. The first error ends it.
func (e *Env) each(ctx context.Context, n int, f func(i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next, done atomic.Int64
	var wg sync.WaitGroup
	for range min(e.Workers, n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					stop(err)
					return
				}
				if d := int(done.Add(1)); e.Progress != nil {
					e.Progress(d, n)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// median returns the middle one of a list, the upper of two.
func median(list []float64) float64 {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}
