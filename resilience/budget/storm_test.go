package budget_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/resilience/budget"
)

// storm is a fleet of capacity 1,200 a second that falls to a tenth in seconds
// 10 to 19 while 1,000 new requests a second come, each with at most three
// attempts: how long does the outage last for the users?
type storm struct {
	peak, sent, served int
	recovered          int // seconds from second 19 until load is back at 1,050
}

const (
	stormRate, stormSeconds, stormAttempts = 1000, 60, 3
)

// run plays it. wait is the delay in seconds before attempt k+1 (0: the next
// second), spread evenly over as many seconds; b may be nil.
func run(wait func(k int) int, attempts int, b *budget.Budget) storm {
	due := make([][stormAttempts]int, stormSeconds+100)
	var s storm
	for sec := range stormSeconds {
		now := time.Duration(sec) * time.Second
		load := due[sec]
		load[0] = stormRate
		if b != nil {
			for range stormRate {
				b.Request(now)
			}
			for k := stormAttempts - 1; k > 0; k-- { // the oldest first
				load[k] = admitted(b, now, load[k])
			}
		}
		s.play(sec, load, due, attempts, wait)
	}
	return s
}

func admitted(b *budget.Budget, now time.Duration, n int) (ok int) {
	for range n {
		if b.Retry(now) {
			ok++
		}
	}
	return ok
}

func (s *storm) play(sec int, load [stormAttempts]int, due [][stormAttempts]int, attempts int, wait func(int) int) {
	capacity := 1200
	if sec >= 10 && sec < 20 {
		capacity = 120
	}
	total := 0
	for _, n := range load {
		total += n
	}
	s.peak, s.sent = max(s.peak, total), s.sent+total
	if sec >= 10 && sec < 20 {
		s.served += min(total, capacity)
	}
	if sec > 19 && s.recovered == 0 && total <= 1050 {
		s.recovered = sec - 19
	}
	if total <= capacity {
		return
	}
	for k := range attempts - 1 {
		failed := int(float64(load[k]) * (float64(total-capacity) / float64(total)))
		spread(due, sec, k, failed, wait(k))
	}
}

func spread(due [][stormAttempts]int, sec, k, failed, wait int) {
	if wait == 0 {
		due[sec+1][k+1] += failed
		return
	}
	for i := range wait {
		due[sec+wait+i][k+1] += failed / wait
	}
}

// TestStorm has the integers of the experiment: retries at once triple the load
// for the length of the outage and beyond, jitter only spreads them, and the
// budget bounds the load at 1.1 of normal.
func TestStorm(t *testing.T) {
	atOnce := func(int) int { return 0 }
	backoff := func(k int) int { return 2 << k }
	b := must(t, budget.Config{Share: .1, Min: -1, Window: time.Second})
	got := map[string]storm{
		"none":      run(atOnce, 1, nil),
		"immediate": run(atOnce, stormAttempts, nil),
		"backoff":   run(backoff, stormAttempts, nil),
		"budget":    run(backoff, stormAttempts, b),
	}
	want := map[string]storm{
		"none":      {1000, 60000, 1200, 1},
		"immediate": {2876, 80068, 1200, 6},
		"backoff":   {2820, 84556, 1200, 20},
		"budget":    {1100, 61170, 1200, 4},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(storm{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
