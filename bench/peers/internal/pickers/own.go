package pickers

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/c3"
	"github.com/shardd/shardd/balance/lalb"
	"github.com/shardd/shardd/balance/latency"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/balance/wrr"
)

// build makes a policy over a set.
type build func(*balance.Set) (balance.Picker, error)

// own returns this module's policies with time as an argument.
func own() []Subject {
	f := func(name string, weight func(int) float64, b build) Subject {
		return Subject{Name: name, Ours: true, Clock: "argument", New: func(n int) (Loop, func(), error) {
			p, err := newPicker(n, weight, b)
			return virtual(p), none, err
		}}
	}
	least := func(c balance.Choices) build {
		return func(s *balance.Set) (balance.Picker, error) { return balance.NewLeastRequest(s, c) }
	}
	return []Subject{
		f("P2C", equal, p2c),
		f("P2C, weighted", uneven, p2c),
		f("least request, with replacement", equal, least(balance.Choices{Replace: true})),
		f("least request, without replacement", equal, least(balance.Choices{})),
		f("random", equal, func(s *balance.Set) (balance.Picker, error) { return balance.NewRandom(s), nil }),
		f("random, weighted", uneven, func(s *balance.Set) (balance.Picker, error) { return balance.NewRandom(s), nil }),
		f("random two", equal, func(s *balance.Set) (balance.Picker, error) { return balance.NewRandomTwo(s, nil) }),
		f("always go left, 2", equal, func(s *balance.Set) (balance.Picker, error) { return balance.NewGoLeft(s, 2, nil) }),
		f("full scan", equal, func(s *balance.Set) (balance.Picker, error) { return balance.NewFullScan(s, nil) }),
		f("round robin", equal, func(s *balance.Set) (balance.Picker, error) { return wrr.NewRoundRobin(s, 0), nil }),
		f("expanded", uneven, func(s *balance.Set) (balance.Picker, error) { return wrr.NewExpanded(s, 0) }),
		f("smooth", uneven, smooth),
		f("smooth, odd weights", odd, smooth),
		f("EDF", uneven, func(s *balance.Set) (balance.Picker, error) { return wrr.NewEDF(s), nil }),
		f("static stride", uneven, func(s *balance.Set) (balance.Picker, error) { return wrr.NewStride(s, 0), nil }),
		f("reported load", equal, reported),
		f("least connections", uneven, func(s *balance.Set) (balance.Picker, error) { return wrr.NewLeastConn(s), nil }),
		f("weighted least request", uneven, func(s *balance.Set) (balance.Picker, error) {
			return wrr.NewWeightedLeast(s, wrr.WeightedLeastConfig{})
		}),
		f("Peak EWMA", equal, peak),
		f("squared EWMA", equal, func(s *balance.Set) (balance.Picker, error) {
			cost, err := latency.NewSquaredEWMA(latency.SquaredConfig{})
			return p2cBy(s, cost, err)
		}),
		f("server queue", equal, func(s *balance.Set) (balance.Picker, error) {
			cost, err := latency.NewServerQueue(latency.QueueConfig{})
			return p2cBy(s, cost, err)
		}),
		f("success rate (kratos)", equal, success(latency.Kratos())),
		f("success rate (go-zero)", equal, success(latency.GoZero())),
		f("LALB", equal, lalbPicker),
		{Name: "LALB", Ours: true, Clock: "argument", Only: 1024, New: func(n int) (Loop, func(), error) {
			p, err := newPicker(n, equal, lalbPicker)
			return virtual(p), none, err
		}},
		f("C3", equal, func(s *balance.Set) (balance.Picker, error) { return c3.New(s, c3.Config{}) }),
		f("C3, 2 choices", equal, func(s *balance.Set) (balance.Picker, error) { return c3.New(s, c3.Config{Choices: 2}) }),
		f("Prequal", equal, probed),
	}
}

// timed returns those policies that look at latency, with a caller that reads
// the clock, as it has to in a program.
func timed() []Subject {
	f := func(name string, b build) Subject {
		return Subject{Name: name, Ours: true, Clock: "caller", New: func(n int) (Loop, func(), error) {
			p, err := newPicker(n, equal, b)
			return clocked(p), none, err
		}}
	}
	return []Subject{
		f("Peak EWMA", peak),
		f("success rate (kratos)", success(latency.Kratos())),
		f("success rate (go-zero)", success(latency.GoZero())),
		f("LALB", lalbPicker),
	}
}

func equal(int) float64    { return 1 }
func uneven(i int) float64 { return float64(1 + i%7) }

// odd has a period that is too long to be computed as a whole.
func odd(i int) float64 { return float64(1009 + i*37%991) }

func p2c(s *balance.Set) (balance.Picker, error) { return balance.NewP2C(s, nil) }

func p2cBy(s *balance.Set, cost balance.Cost, err error) (balance.Picker, error) {
	if err != nil {
		return nil, err
	}
	return balance.NewP2C(s, cost)
}

func smooth(s *balance.Set) (balance.Picker, error) { return wrr.NewSmooth(s, wrr.SmoothConfig{}) }

func lalbPicker(s *balance.Set) (balance.Picker, error) { return lalb.New(s, lalb.Config{}) }

func peak(s *balance.Set) (balance.Picker, error) {
	cost, err := latency.NewPeakEWMA(latency.PeakConfig{Default: 30 * time.Millisecond})
	return p2cBy(s, cost, err)
}

func success(c latency.SuccessConfig) build {
	return func(s *balance.Set) (balance.Picker, error) { return latency.NewSuccess(s, c) }
}

// reported has had a report of every node.
func reported(s *balance.Set) (balance.Picker, error) {
	p := wrr.NewReported(s, wrr.ReportedConfig{Blackout: -1, Expiration: 1 << 62}, 0)
	for i := range s.Len() {
		p.Report(i, 0, wrr.Load{QPS: uneven(i), Utilization: 1})
	}
	return p, nil
}

// probed has an answer of every node; they stay usable.
func probed(s *balance.Set) (balance.Picker, error) {
	p, err := prequal.New(s, prequal.Config{MaxAge: 1 << 62, Probes: 1e-12, Remove: -1})
	if err != nil {
		return nil, err
	}
	for i := range s.Len() {
		p.Report(i, 0, i%5, time.Duration(i)*time.Microsecond)
	}
	return p, nil
}

func newPicker(n int, weight func(int) float64, b build) (balance.Picker, error) {
	members := make([]balance.Member, n)
	for i := range members {
		members[i] = balance.Member{Node: balance.NewNode(fmt.Sprint("node-", i), 0), Weight: weight(i)}
	}
	set, err := balance.NewSet(members)
	if err != nil {
		return nil, err
	}
	p, err := b(set)
	if err != nil {
		return nil, err
	}
	t, err := p.Pick(0, 0, nil)
	if err != nil {
		return nil, err
	}
	t.Done(0, balance.Outcome{Result: balance.Success})
	return p, nil
}

// step is the virtual time between two requests, took the time of each.
const (
	step = 10 * time.Microsecond
	took = time.Millisecond
)

// virtual drives p in a time of its own.
func virtual(p balance.Picker) Loop {
	return func(first uint64, requests, work int) {
		now := time.Duration(first&(1<<32-1)) * step
		for k := first; k < first+uint64(requests); k++ {
			t, _ := p.Pick(now, k, nil)
			if work > 0 {
				spin(work)
			}
			t.Done(now+took, balance.Outcome{Result: balance.Success})
			now += step
		}
	}
}

// clocked drives p by the machine's clock.
func clocked(p balance.Picker) Loop {
	origin := time.Now()
	return func(first uint64, requests, work int) {
		for k := first; k < first+uint64(requests); k++ {
			t, _ := p.Pick(time.Since(origin), k, nil)
			if work > 0 {
				spin(work)
			}
			t.Done(time.Since(origin), balance.Outcome{Result: balance.Success})
		}
	}
}
