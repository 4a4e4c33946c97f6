package sim

import (
	"time"

	"github.com/shardd/shardd/balance"
)

// stats is what a run measures.
type stats struct {
	servers  int
	began    int64
	now      int64
	ended    bool
	arrivals int
	refused  int
	results  [balance.Overload + 1]int
	took     []int64 // of counted requests, in the order of their ends
	peak     int
	longest  int     // queue now
	levels   []level // by queue length
}

// level is how many servers hold so many requests or more.
type level struct {
	count int32
	since int64   // of the last change
	area  float64 // count x time
	any   float64 // time with a count above 0
}

func (t *stats) init(c Config) {
	t.servers = len(c.Servers)
	t.levels = make([]level, 64)
	expected := c.Rate * (float64(c.Window)/float64(Unit) + 1)
	t.took = make([]int64, 0, int(min(expected*1.01+100, 1<<26)))
}

// settle closes the books of a level.
func (l *level) settle(now int64) {
	if l.count > 0 {
		dt := float64(now - l.since)
		l.area += float64(l.count) * dt
		l.any += dt
	}
	l.since = now
}

// up counts that a server has k requests now, one more than before.
func (t *stats) up(k int, now int64, counting bool) {
	if k >= len(t.levels) {
		t.levels = append(t.levels, make([]level, len(t.levels))...)
	}
	l := &t.levels[k]
	if !t.ended {
		l.settle(now)
	}
	l.count++
	t.longest = max(t.longest, k)
	if counting {
		t.peak = max(t.peak, t.longest)
	}
}

// down counts that a server that had k requests loses one.
func (t *stats) down(k int, now int64) {
	l := &t.levels[k]
	if !t.ended {
		l.settle(now)
	}
	l.count--
	for t.longest > 0 && t.levels[t.longest].count == 0 {
		t.longest--
	}
}

func (t *stats) begin(now int64) {
	t.began = now
	for k := range t.levels {
		l := &t.levels[k]
		l.since, l.area, l.any = now, 0, 0
	}
}

func (t *stats) end(now int64) {
	for k := range t.levels {
		t.levels[k].settle(now)
	}
	t.now, t.ended = now, true
}

func (t *stats) sample(took int64, r balance.Result) {
	t.took = append(t.took, took)
	t.results[r]++
}

// Result is what a run measured, of the counted requests. Times are in units. A
// request that a full server turns away takes no time, and counts: Results has their
// number.
type Result struct {
	// Arrivals counts the requests, Refused those that no server was picked for.
	Arrivals, Refused int
	// Results counts how they ended, by balance.Result.
	Results [balance.Overload + 1]int
	// Mean is that of the sojourn: waiting and service, or of what Config.Waiting
	// says. So are Quantile and Within.
	Mean float64
	// Peak is the longest queue right after an arrival, the one in service
	// counted; MeanLongest its average over time.
	Peak        int
	MeanLongest float64
	// Tail is the share of servers with i requests or more, averaged over time.
	Tail []float64
	// Picks are the requests of each server.
	Picks []int

	took []int64
}

func (t *stats) result(s *Sim) *Result {
	r := &Result{Arrivals: t.arrivals, Refused: t.refused, Results: t.results, Peak: t.peak, took: t.took}
	sum := 0.0
	for _, x := range t.took {
		sum += float64(x)
	}
	r.Mean = sum / float64(max(1, len(t.took))) / float64(Unit)
	length := float64(max(1, t.now-t.began))
	for k := range t.levels {
		share := t.levels[k].area / length / float64(t.servers)
		if k == 0 {
			share = 1
		}
		r.Tail = append(r.Tail, share)
		r.MeanLongest += t.levels[k].any / length
	}
	for i := range s.servers {
		r.Picks = append(r.Picks, s.servers[i].picked)
	}
	return r
}

// Quantile returns element floor(q n) of the n sorted sojourns, in units; 0
// without any. It reorders them.
func (r *Result) Quantile(q float64) float64 {
	n := len(r.took)
	if n == 0 {
		return 0
	}
	return float64(nth(r.took, min(int(q*float64(n)), n-1))) / float64(Unit)
}

// Within returns the share of requests that took at most d.
func (r *Result) Within(d time.Duration) float64 {
	count := 0
	for _, x := range r.took {
		if x <= int64(d) {
			count++
		}
	}
	return float64(count) / float64(max(1, r.Arrivals))
}

// Share returns server i's share of the requests.
func (r *Result) Share(i int) float64 { return float64(r.Picks[i]) / float64(max(1, r.Arrivals)) }

// nth returns the element that would be at place k if x were sorted, and
// reorders x (Hoare's selection, the middle of three as pivot).
func nth(x []int64, k int) int64 {
	for lo, hi := 0, len(x)-1; lo < hi; {
		pivot := median(x[lo], x[(lo+hi)/2], x[hi])
		i, j := lo, hi
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return x[k]
		}
	}
	return x[k]
}

func median(a, b, c int64) int64 { return max(min(a, b), min(max(a, b), c)) }
