package capacity

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Errors that callers decide on.
var (
	// ErrLoad says that a Load or a Target cannot be; the text names the field.
	ErrLoad = errors.New("capacity: bad load")
	// ErrUnreachable says that no number of nodes meets the target, or none up to
	// MaxNodes.
	ErrUnreachable = errors.New("capacity: target cannot be met")
)

// MaxNodes is the largest fleet that is considered.
const MaxNodes = 1 << 20

// Load is what a fleet has to do.
type Load struct {
	// Rate is the number of requests a second, above 0.
	Rate float64
	// Service is the mean time that a request takes without waiting, above 0.
	Service time.Duration
	// ServiceCV2 is the squared coefficient of variation of that time: 0 constant,
	// 1 exponential, above 1 for a long tail.
	ServiceCV2 float64
	// ArrivalCV2 is that of the time between requests; 1 for requests that come
	// independently.
	ArrivalCV2 float64
	// Workers is how many requests a node serves at a time; 0 means 1.
	Workers int
}

// Target is how long requests may wait.
type Target struct {
	// Wait is the longest mean wait, or the longest wait at Quantile; 0 or more,
	// and above 0 for a mean.
	Wait time.Duration
	// Quantile of the wait that Wait is for, in (0, 1); 0 is the mean.
	Quantile float64
}

// Outlook is how a fleet would do.
type Outlook struct {
	Nodes       int     `json:"nodes"`
	Utilisation float64 `json:"utilisation"`
	// Waiting is the share of requests that wait at all.
	Waiting float64 `json:"waiting"`
	// MeanWait, P50, P95 and P99 are waits in seconds; nil for a fleet that does not
	// keep up.
	MeanWait *float64 `json:"mean_wait"`
	P50      *float64 `json:"p50_wait"`
	P95      *float64 `json:"p95_wait"`
	P99      *float64 `json:"p99_wait"`
}

func (l Load) check() error {
	switch {
	case !(l.Rate > 0 && l.Rate < 1e15):
		return fmt.Errorf("%w: rate %v requests a second: want more than 0 and less than 1e15", ErrLoad, l.Rate)
	case l.Service <= 0:
		return fmt.Errorf("%w: service time %v: want more than 0", ErrLoad, l.Service)
	case !(l.ServiceCV2 >= 0 && l.ServiceCV2 < 1e6) || !(l.ArrivalCV2 >= 0 && l.ArrivalCV2 < 1e6):
		return fmt.Errorf("%w: cv^2 %v of service, %v of arrivals: want 0 to less than 1e6", ErrLoad, l.ServiceCV2, l.ArrivalCV2)
	case l.Workers < 0 || l.Workers > 1<<16:
		return fmt.Errorf("%w: %d workers a node: want 1 to %d", ErrLoad, l.Workers, 1<<16)
	}
	return nil
}

func (t Target) check() error {
	switch {
	case t.Wait < 0 || t.Wait == 0 && t.Quantile == 0:
		return fmt.Errorf("%w: a wait of %v: want more than 0; requests that share servers wait at times", ErrLoad, t.Wait)
	case !(t.Quantile >= 0 && t.Quantile < 1):
		return fmt.Errorf("%w: quantile %v: want 0 (the mean) to less than 1", ErrLoad, t.Quantile)
	}
	return nil
}

func (l Load) workers() int { return max(1, l.Workers) }

// offered returns the load in servers.
func (l Load) offered() float64 { return l.Rate * l.Service.Seconds() }

// Utilisation returns the part of their time that nodes would work; 1 and more
// for a fleet that does not keep up.
func (l Load) Utilisation(nodes int) float64 {
	return l.offered() / float64(nodes*l.workers())
}

// Wait returns the mean wait in seconds with so many nodes, and the share of
// requests that wait at all; +Inf and 1 if they do not keep up.
func (l Load) Wait(nodes int) (mean, waiting float64) {
	c, a := nodes*l.workers(), l.offered()
	rho := a / float64(c)
	if rho >= 1 {
		return math.Inf(1), 1
	}
	waiting = ErlangC(c, a)
	return waiting * l.Service.Seconds() / (float64(c) * (1 - rho)) * factor(c, rho, l.ArrivalCV2, l.ServiceCV2), waiting
}

// Quantile returns the wait in seconds that a share q of the requests does not
// exceed; +Inf if the fleet does not keep up.
func (l Load) Quantile(nodes int, q float64) float64 {
	mean, waiting := l.Wait(nodes)
	return quantile(mean, waiting, l.spread(nodes), q)
}

// Outlook returns how so many nodes would do. Errors wrap ErrLoad.
func (l Load) Outlook(nodes int) (Outlook, error) {
	if err := l.check(); err != nil {
		return Outlook{}, err
	}
	if nodes < 1 || nodes > MaxNodes {
		return Outlook{}, fmt.Errorf("%w: %d nodes: want 1 to %d", ErrLoad, nodes, MaxNodes)
	}
	mean, waiting := l.Wait(nodes)
	o := Outlook{Nodes: nodes, Utilisation: l.Utilisation(nodes), Waiting: waiting}
	if !math.IsInf(mean, 1) {
		v := l.spread(nodes)
		p50, p95, p99 := quantile(mean, waiting, v, .5), quantile(mean, waiting, v, .95), quantile(mean, waiting, v, .99)
		o.MeanWait, o.P50, o.P95, o.P99 = &mean, &p50, &p95, &p99
	}
	return o, nil
}

// meets tells whether so many nodes meet the target.
func (l Load) meets(nodes int, t Target) bool {
	mean, waiting := l.Wait(nodes)
	if t.Quantile > 0 {
		mean = quantile(mean, waiting, l.spread(nodes), t.Quantile)
	}
	return mean <= t.Wait.Seconds()*(1+1e-12)
}

// Nodes returns the smallest fleet that meets the target. Errors wrap ErrLoad, or
// ErrUnreachable if it would be larger than MaxNodes.
func (l Load) Nodes(t Target) (int, error) {
	if err := errors.Join(l.check(), t.check()); err != nil {
		return 0, err
	}
	low := int(l.offered()/float64(l.workers())) + 1 // fewer do not keep up
	step := 1
	high := low
	for ; high <= MaxNodes && !l.meets(high, t); step *= 2 {
		low, high = high+1, high+step
	}
	if high > MaxNodes {
		return 0, fmt.Errorf("%w: by up to %d nodes", ErrUnreachable, MaxNodes)
	}
	for low < high {
		if mid := (low + high) / 2; l.meets(mid, t) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high, nil
}

// Utilisation steps of MaxUtilisation.
const utilisationSteps = 1000

// MaxUtilisation returns the largest utilisation, in steps of 0.001, at which so
// many nodes meet the target; l.Rate does not count. 0 if not even 0.001 does.
func (l Load) MaxUtilisation(nodes int, t Target) (float64, error) {
	l.Rate = 1
	if err := errors.Join(l.check(), t.check()); err != nil {
		return 0, err
	}
	if nodes < 1 || nodes > MaxNodes {
		return 0, fmt.Errorf("%w: %d nodes: want 1 to %d", ErrLoad, nodes, MaxNodes)
	}
	full := float64(nodes*l.workers()) / l.Service.Seconds()
	low, high := 0, utilisationSteps // low meets it, high does not
	for low+1 < high {
		mid := (low + high) / 2
		l.Rate = full * float64(mid) / utilisationSteps
		if l.meets(nodes, t) {
			low = mid
		} else {
			high = mid
		}
	}
	return float64(low) / utilisationSteps, nil
}

// Split returns how each of k separate pools would do, if nodes and requests were
// dealt out evenly among them; nodes must be a multiple of k. Each pool waits for
// its own nodes while those of others are idle.
func (l Load) Split(nodes, k int) (Outlook, error) {
	if k < 1 || nodes%k != 0 {
		return Outlook{}, fmt.Errorf("%w: %d nodes in %d pools: want pools of equal size", ErrLoad, nodes, k)
	}
	l.Rate /= float64(k)
	return l.Outlook(nodes / k)
}
