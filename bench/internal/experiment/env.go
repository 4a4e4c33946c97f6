package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shardd/shardd/bench/sim"
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
	asSetUp  bool // the parameters that rows depend on are the defaults
}

// Experiment is one set-up.
type Experiment struct {
	Name  string
	About string // a line
	// Uses names the parameters that count: n lambda T tau m c policies seeds units.
	Uses []string
	// Defaults are the set-up's values.
	Defaults Params
	// Stable says that only utilisations below 1 have an answer.
	Stable bool
	// Least and Most bound n; 0 is 1 and 2,000,000.
	Least, Most int
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
	if err := x.Check(e); err != nil {
		return nil, err
	}
	e.defaults = x.Defaults
	e.fill()
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
	e.asSetUp = reflect.DeepEqual(rowsOf(e.Params), rowsOf(d))
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

// rowsOf is p without what rows do not depend on.
func rowsOf(p Params) Params {
	p.Seeds, p.Seed, p.Units = 0, 0, 0
	return p
}

// skips reports whether a quick run leaves out a row: one that has nothing to compare
// with, of a set-up that nobody has changed. Who asks for other parameters wants to see
// their rows.
func (e *Env) skips(row Row) bool { return e.Quick && e.asSetUp && len(row.Checks) == 0 }

func orList[T any](list *[]T, def []T) {
	if len(*list) == 0 {
		*list = def
	}
}

// Limits of parameters. A run of maxRequests takes minutes and 4 GiB.
const (
	maxN        = 2_000_000
	maxClients  = 10_000
	maxSeeds    = 10_000
	maxRequests = 5e8
	leastTime   = 1e-3 // units
)

// Check tells whether x can be played with e. The error wraps ErrParam.
func (x *Experiment) Check(e Env) error {
	e.defaults = x.Defaults
	e.fill()
	if err := e.check(x); err != nil {
		return fmt.Errorf("%s: %w", x.Name, err)
	}
	return nil
}

func (e *Env) check(x *Experiment) error {
	for _, part := range []error{
		allWithin("n", e.N, max(1, x.Least), cmp.Or(x.Most, maxN)), allWithin("m", e.M, 1, maxClients), allWithin("seeds", []int{e.Seeds}, 1, maxSeeds),
		allWithin("tau", e.Tau, leastTime, 1e6), allWithin("c", e.C, 1, 1e6), e.checkLambda(x.Stable),
		allWithin("workers", []int{e.Workers}, 1, 1<<16),
	} {
		if part != nil {
			return part
		}
	}
	for _, t := range e.T {
		if t != 0 && !(t >= leastTime && t <= 1e6) {
			return fmt.Errorf("%w: T %v: want 0, or %v to 1e6", ErrParam, t, leastTime)
		}
	}
	if slices.Contains(x.Uses, "units") {
		return e.checkUnits()
	}
	return nil
}

func allWithin[T int | float64](name string, list []T, low, high T) error {
	for _, x := range list {
		if x < low || x > high || x != x { // not a number
			return fmt.Errorf("%w: %s %v: want %v to %v", ErrParam, name, x, low, high)
		}
	}
	return nil
}

func (e *Env) checkLambda(stable bool) error {
	for _, x := range e.Lambda {
		switch {
		case !(x >= leastTime && x <= 10):
			return fmt.Errorf("%w: lambda %v: want %v to 10", ErrParam, x, leastTime)
		case stable && x >= 1:
			return fmt.Errorf("%w: lambda %v: want less than 1: there is no steady state at full load", ErrParam, x)
		}
	}
	return nil
}

// checkUnits refuses runs that do not end today.
func (e *Env) checkUnits() error {
	if err := allWithin("units", []float64{e.Units}, leastTime, 1e8); err != nil {
		return err
	}
	n, lambda := 100., 1.
	if len(e.N) > 0 {
		n = float64(slices.Max(e.N))
	}
	if len(e.Lambda) > 0 {
		lambda = slices.Max(e.Lambda)
	}
	if requests := n * lambda * (e.Units + float64(warmup/sim.Unit)); requests > maxRequests {
		return fmt.Errorf("%w: %.2g requests a run: want at most %.0g: less n, lambda or units", ErrParam, requests, maxRequests)
	}
	return nil
}

// Shorter says in what respect e is less than x's set-up, for which its expected
// values are; "" if it is not.
func (x *Experiment) Shorter(e Env) string {
	var list []string
	if d := x.Defaults.Units; e.Units > 0 && e.Units < d {
		list = append(list, fmt.Sprintf("units %v of %v", e.Units, d))
	}
	if d := x.Defaults.Seeds; e.Seeds > 0 && e.Seeds < d {
		list = append(list, fmt.Sprintf("seeds %d of %d", e.Seeds, d))
	}
	return strings.Join(list, ", ")
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
