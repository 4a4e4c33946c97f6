package capacity_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/migrate/capacity"
)

// plain is service of 10 ms, exponential, at a rate that makes rho of c nodes.
func plain(c int, rho float64) capacity.Load {
	return capacity.Load{Rate: rho * float64(c) * 100, Service: 10 * time.Millisecond, ServiceCV2: 1, ArrivalCV2: 1}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v +- %v", what, got, want, tolerance)
	}
}

// TestErlangC compares the recursion with the definition in exact rationals.
func TestErlangC(t *testing.T) {
	for _, c := range []int{1, 2, 7, 50, 200} {
		a := float64(c) * .9
		want, _ := rationalC(c, a).Float64()
		near(t, fmt.Sprint("C of ", c), capacity.ErlangC(c, a), want, 1e-12)
	}
	near(t, "C without load", capacity.ErlangC(3, 0), 0, 0)
	near(t, "C over capacity", capacity.ErlangC(3, 4), 1, 0)
	if c := capacity.ErlangC(1_000_000, 999_000); !(c > .1 && c < .5) {
		t.Errorf("C of a million servers at 99.9 %% is %v", c)
	}
}

// rationalC is a^c/c! / (1 - rho) over that plus the sum of a^k/k!.
func rationalC(c int, a float64) *big.Rat {
	load := new(big.Rat).SetFloat64(a)
	term, sum := big.NewRat(1, 1), new(big.Rat)
	for k := range c {
		sum.Add(sum, term)
		term = new(big.Rat).Mul(term, new(big.Rat).Quo(load, big.NewRat(int64(k+1), 1)))
	}
	idle := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Quo(load, big.NewRat(int64(c), 1)))
	all := new(big.Rat).Quo(term, idle)
	return all.Quo(all, sum.Add(sum, all))
}

func TestWait(t *testing.T) {
	for i, want := range []float64{90, 42.6316, 19.6938, 8.7692, 3.6959, 1.4319} {
		mean, _ := plain(1<<i, .9).Wait(1 << i)
		near(t, fmt.Sprint("W in ms, c = ", 1<<i), 1e3*mean, want, 1e-3)
	}
	for c, want := range map[int]float64{1: .333, 2: .577, 4: .747, 8: .854, 16: .918, 32: .954, 64: .975} {
		got, err := plain(c, .5).MaxUtilisation(c, capacity.Target{Wait: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprint("rho, c = ", c), got, want, 1e-9)
	}
}

// TestSteadyServiceWaitsLess: whatever the load, what varies less waits less, and
// constant service in light traffic c/(c+1) of exponential at most.
func TestSteadyServiceWaitsLess(t *testing.T) {
	for _, c := range []int{1, 2, 4, 30, 1000, 10000} {
		for _, rho := range []float64{.05, .2, .5, .8, .9, .99} {
			l, last := plain(c, rho), 0.0
			exponential, _ := l.Wait(c)
			for _, v := range []float64{0, .5, 1, 2, 5} {
				l.ServiceCV2 = v
				mean, _ := l.Wait(c)
				if limit := exponential * float64(c) / float64(c+1); v == 0 && mean > limit*(1+1e-9) {
					t.Errorf("%d servers at %v: constant service waits %v, want %v at most", c, rho, mean, limit)
				}
				if mean < last {
					t.Errorf("%d servers at %v: cv^2 of %v waits %v, less than %v", c, rho, v, mean, last)
				}
				last = mean
			}
		}
	}
}

func TestNodes(t *testing.T) {
	l := capacity.Load{Rate: 12000, Service: 5 * time.Millisecond, ServiceCV2: 1, ArrivalCV2: 1}
	for _, target := range []capacity.Target{
		{Wait: time.Millisecond}, {Wait: 10 * time.Microsecond}, {Wait: time.Second},
		{Wait: 20 * time.Millisecond, Quantile: .99}, {Wait: 0, Quantile: .5},
	} {
		n, err := l.Nodes(target)
		if err != nil {
			t.Fatal(err)
		}
		wait := func(n int) float64 {
			if target.Quantile > 0 {
				return l.Quantile(n, target.Quantile)
			}
			mean, _ := l.Wait(n)
			return mean
		}
		if got := wait(n); got > target.Wait.Seconds() {
			t.Errorf("%+v: %d nodes wait %v", target, n, got)
		}
		if got := wait(n - 1); got <= target.Wait.Seconds() {
			t.Errorf("%+v: %d nodes would do, too: they wait %v", target, n-1, got)
		}
	}
}

func TestSplit(t *testing.T) {
	l := plain(64, .9)
	one, err := l.Outlook(64)
	if err != nil {
		t.Fatal(err)
	}
	eight, err := l.Split(64, 8)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "utilisation", eight.Utilisation, one.Utilisation, 1e-12)
	alone, _ := plain(8, .9).Wait(8)
	near(t, "wait of a pool of 8", *eight.MeanWait, alone, 1e-12)
	if *eight.MeanWait < 10**one.MeanWait {
		t.Errorf("eight pools wait %v, one waits %v", *eight.MeanWait, *one.MeanWait)
	}
}

func TestRefused(t *testing.T) {
	good, target := plain(4, .5), capacity.Target{Wait: time.Millisecond}
	f := func(change func(*capacity.Load, *capacity.Target), want error) {
		t.Helper()
		l, to := good, target
		change(&l, &to)
		if _, err := l.Nodes(to); !errors.Is(err, want) {
			t.Errorf("%+v, %+v: %v, want %v", l, to, err, want)
		}
	}
	f(func(l *capacity.Load, _ *capacity.Target) { l.Rate = 0 }, capacity.ErrLoad)
	f(func(l *capacity.Load, _ *capacity.Target) { l.Rate = math.NaN() }, capacity.ErrLoad)
	f(func(l *capacity.Load, _ *capacity.Target) { l.Service = 0 }, capacity.ErrLoad)
	f(func(l *capacity.Load, _ *capacity.Target) { l.ServiceCV2 = -1 }, capacity.ErrLoad)
	f(func(l *capacity.Load, _ *capacity.Target) { l.Workers = -1 }, capacity.ErrLoad)
	f(func(_ *capacity.Load, t *capacity.Target) { t.Wait = 0 }, capacity.ErrLoad)
	f(func(_ *capacity.Load, t *capacity.Target) { t.Quantile = 1 }, capacity.ErrLoad)
	f(func(l *capacity.Load, _ *capacity.Target) { l.Rate = 1e12 }, capacity.ErrUnreachable)
	if _, err := good.Split(10, 3); !errors.Is(err, capacity.ErrLoad) {
		t.Errorf("10 nodes in 3 pools: %v", err)
	}
	if o, err := plain(4, 1.2).Outlook(4); err != nil || o.MeanWait != nil || o.Waiting != 1 {
		t.Errorf("a fleet that does not keep up: %+v, %v", o, err)
	}
}

// TestAgainstSimulator holds the formulas to within 10 % of what is simulated, or 2 %
// of a service time: the mean wait, and that of which 5 and 1 % are longer.
func TestAgainstSimulator(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine, and minutes of it")
	}
	for _, service := range []struct {
		cv2  float64
		dist sim.Dist
	}{{0, sim.Constant(1)}, {.25, sim.Erlang(4, 1)}, {1, sim.Exponential(1)}, {2, sim.Hyper(1, 2)}} {
		t.Run(fmt.Sprint("cv2=", service.cv2), func(t *testing.T) {
			t.Parallel()
			for _, c := range []int{1, 4, 16} {
				for _, rho := range []float64{.7, .85, .95} {
					l := capacity.Load{Rate: rho * float64(c), Service: time.Second, ServiceCV2: service.cv2, ArrivalCV2: 1}
					r := simulated(t, c, rho, service.dist)
					mean, _ := l.Wait(c)
					for _, x := range []struct {
						what            string
						formula, played float64
					}{{"mean", mean, r.Mean}, {"p95", l.Quantile(c, .95), r.Quantile(.95)}, {"p99", l.Quantile(c, .99), r.Quantile(.99)}} {
						what := fmt.Sprintf("%d servers at %v: %s", c, rho, x.what)
						t.Logf("%s: simulated %.4f, formula %.4f (%+.1f %%)", what, x.played, x.formula, 100*(x.formula/x.played-1))
						near(t, what, x.formula, x.played, max(.1*x.played, .02)) // of a service time
					}
				}
			}
		})
	}
}

// simulated are the waits of one line for c servers.
func simulated(t *testing.T, c int, rho float64, service sim.Dist) *sim.Result {
	t.Helper()
	set, err := sim.NewSet(1)
	if err != nil {
		t.Fatal(err)
	}
	requests := 1e6
	if rho > .9 {
		requests = 3e6 // what is long ago still tells
	}
	window := requests / rho / float64(c)
	s, err := sim.New(sim.Config{
		Seed: 1, Servers: []sim.Server{{Slots: c}}, Clients: []sim.Client{{Picker: balance.NewRandom(set)}},
		Rate: rho * float64(c), Service: service, Waiting: true, Warmup: 1000 * sim.Unit, Window: time.Duration(window * float64(sim.Unit)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Run()
}

// TestSpread: the distribution of waits has the mean and variance that it is made
// with, by integrating its tail from its quantiles.
func TestSpread(t *testing.T) {
	for _, v := range []float64{0, .25, .5, 1, 2, 8} {
		for _, rho := range []float64{.3, .7, .95} {
			l := capacity.Load{Rate: rho, Service: time.Second, ServiceCV2: v, ArrivalCV2: 1}
			mean, waiting := l.Wait(1)
			sum := 0.0
			const steps = 4000
			for i := range steps {
				sum += l.Quantile(1, 1-waiting*(float64(i)+.5)/steps) / steps
			}
			near(t, fmt.Sprintf("mean wait of those that wait, cv^2 %v at %v", v, rho), sum, mean/waiting, .01*mean/waiting)
			if p50, p99 := l.Quantile(1, .5), l.Quantile(1, .99); !(p50 <= p99) {
				t.Errorf("cv^2 %v at %v: p50 %v, p99 %v", v, rho, p50, p99)
			}
		}
	}
}

// TestQuantileGrows: more load never waits less, so that Nodes and MaxUtilisation may
// search.
func TestQuantileGrows(t *testing.T) {
	for _, v := range []float64{0, .25, .6, 1, 1.5, 4, 25} {
		for _, c := range []int{1, 3, 40} {
			for _, q := range []float64{.5, .95, .999} {
				last := 0.0
				for step := 1; step < 1000; step++ {
					l := capacity.Load{Rate: float64(c) * float64(step) / 1000, Service: time.Second, ServiceCV2: v, ArrivalCV2: 1}
					wait := l.Quantile(c, q)
					if wait < last*(1-1e-9) {
						t.Fatalf("cv^2 %v, %d servers, p%v: %v at %v per mille, %v before", v, c, 100*q, wait, step, last)
					}
					last = wait
				}
			}
		}
	}
}

func ExampleLoad_Nodes() {
	l := capacity.Load{Rate: 12000, Service: 5 * time.Millisecond, ServiceCV2: 1, ArrivalCV2: 1}
	n, err := l.Nodes(capacity.Target{Wait: 10 * time.Millisecond, Quantile: .99})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d nodes at %.0f %%\n", n, 100*l.Utilisation(n))
	// Output: 63 nodes at 95 %
}
