package c3

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

const ms = time.Millisecond

func newPicker(tb testing.TB, n int, cfg Config) *Picker {
	tb.Helper()
	p, err := New(balancetest.NewSet(tb, balancetest.Equal(n)...), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestScore checks R - 1/mu + q^3/mu, q = 1 + outstanding * clients + Q.
func TestScore(t *testing.T) {
	p := newPicker(t, 2, Config{Alpha: 0.5, Clients: 10})
	set := p.Set()
	near(t, "unknown and idle", p.Score(0, 0), 1)
	tk := set.Take(0, 0)
	near(t, "unknown and busy", p.Score(0, 0), 30e6*11*11*11)
	tk.Done(20*ms, balance.Outcome{Result: balance.Success, Service: 4 * ms, Queue: 2, HasQueue: true})
	near(t, "one reply", p.Score(0, 20*ms), 20e6-4e6+27*4e6)
	set.Take(0, 20*ms).Done(30*ms, balance.Outcome{Result: balance.Success, Service: 6 * ms, HasQueue: true})
	near(t, "two replies", p.Score(0, 30*ms), 15e6-5e6+8*5e6)
	set.Take(0, 30*ms)
	near(t, "one outstanding", p.Score(0, 30*ms), 15e6-5e6+12*12*12*5e6)
	set.Take(1, 0).Done(20*ms, balance.Outcome{Result: balance.Success})
	near(t, "response time alone", p.Score(1, 20*ms), 20e6)
	near(t, "stale", p.Score(1, 11*time.Second), 1)
}

// TestProbesOnce: of an unknown node that hangs one request is lost, not all.
func TestProbesOnce(t *testing.T) {
	p := newPicker(t, 3, Config{})
	hung := 0
	for k := range 5000 {
		now := time.Duration(k) * ms
		tk, err := p.Pick(now, uint64(k), nil)
		if err != nil {
			t.Fatal(err)
		}
		if tk.Index() == 2 {
			hung++
			continue
		}
		tk.Done(now+ms, balance.Outcome{Result: balance.Success})
	}
	if hung != 1 {
		t.Errorf("%d requests went to a node that never answers, want 1", hung)
	}
}

// TestLimited: with all nodes at their limit a pick is refused, and Wait says
// for how long.
func TestLimited(t *testing.T) {
	p := newPicker(t, 3, Config{Rate: &Rate{Initial: 2, Interval: 20 * ms}})
	for k := range 6 {
		if _, err := p.Pick(0, uint64(k), nil); err != nil {
			t.Fatalf("pick %d: %v", k, err)
		}
	}
	if _, err := p.Pick(0, 7, nil); !errors.Is(err, ErrLimited) {
		t.Fatalf("error %v, want ErrLimited", err)
	}
	if got := p.Wait(0); got != 10*ms {
		t.Errorf("wait %v, want 10 ms", got)
	}
	if _, err := p.Pick(p.Wait(0), 8, nil); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	if _, err := p.Pick(10*ms, 9, []*balance.Node{p.set.Node(0), p.set.Node(1), p.set.Node(2)}); !errors.Is(err, balance.ErrExcluded) {
		t.Errorf("all excluded: error %v, want ErrExcluded", err)
	}
}

// TestBucket: Initial tokens at once, then the rate; a clock that goes back costs
// one bucket at most.
func TestBucket(t *testing.T) {
	r, err := Rate{Initial: 4, Interval: 20 * ms}.fill()
	if err != nil {
		t.Fatal(err)
	}
	l := new(limiter)
	l.init(r)
	burst := func(now time.Duration) (n int) {
		for l.admit(now, r) {
			n++
		}
		return n
	}
	for _, step := range []struct {
		now  time.Duration
		want int
	}{{0, 4}, {5 * ms, 1}, {20 * ms, 3}, {time.Hour, 4}, {0, 0}, {5 * ms, 1}, {time.Hour, 4}, {math.MaxInt64 / 2, 4}} {
		if got := burst(step.now); got != step.want {
			t.Errorf("at %v: %d admitted, want %d", step.now, got, step.want)
		}
	}
}

// TestCubic checks a cut and the curve after it: R = C(dT - cbrt(peak beta /
// C))^3 + peak, dT in ms.
func TestCubic(t *testing.T) {
	r, err := Rate{Initial: 10}.fill()
	if err != nil {
		t.Fatal(err)
	}
	l := new(limiter)
	l.init(r)
	l.received = 5
	l.control(100*ms, r) // sends more than comes back
	near(t, "cut", l.rate(), 2)
	near(t, "peak", l.peak, 10)
	l.control(200*ms, r) // comes back faster than it is sent
	k := math.Cbrt(10 * 0.2 / 4e-6)
	near(t, "curve after 100 ms", l.rate(), 4e-6*(100-k)*(100-k)*(100-k)+10)
	before := l.rate()
	l.received = before / 2
	l.control(210*ms, r)
	near(t, "no cut so soon after an increase", l.rate(), before)
	l.received = 1e6
	l.control(5*time.Second, r)
	near(t, "one step is bounded", l.rate(), before+10)
	l.received = 0
	l.control(6*time.Second, r)
	near(t, "no answers say nothing", l.rate(), before+10)
	for range 100 {
		l.raised, l.received = 0, 1e-9
		l.control(7*time.Second, r)
	}
	near(t, "cuts end", l.rate(), leastRate)
}

// TestReceiveRate: the average of answers an Interval, with empty Intervals.
func TestReceiveRate(t *testing.T) {
	r, err := Rate{ReceiveAlpha: 0.5, Interval: 10 * ms}.fill()
	if err != nil {
		t.Fatal(err)
	}
	l := new(limiter)
	l.init(r)
	for k := range 8 {
		l.answered(time.Duration(k)*ms, r)
	}
	l.answered(10*ms, r)
	near(t, "one interval with 8", l.received, 4)
	l.answered(40*ms, r)
	near(t, "one with 1, two empty", l.received, (0.5*1+0.5*4)/4)
}

func TestConfigRefused(t *testing.T) {
	set := balancetest.NewSet(t, 1)
	for _, cfg := range []Config{
		{Alpha: 2}, {Alpha: math.NaN()}, {Clients: -1}, {Default: -1}, {Exponent: 11},
		{Rate: &Rate{Beta: 1}}, {Rate: &Rate{Initial: -1}}, {Rate: &Rate{Interval: -1}}, {Rate: &Rate{Scale: math.NaN()}},
	} {
		if _, err := New(set, cfg); !errors.Is(err, balance.ErrInvalid) {
			t.Errorf("%+v: error %v, want ErrInvalid", cfg, err)
		}
	}
}

func BenchmarkPickDone(b *testing.B) {
	for name, cfg := range map[string]Config{"n=3": {}, "n=3/rate": {Rate: &Rate{Initial: 1e6}}} {
		b.Run(name, func(b *testing.B) {
			p := newPicker(b, 3, cfg)
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 10 * time.Microsecond
				tk, _ := p.Pick(now, uint64(now), nil)
				now += 10 * time.Microsecond
				tk.Done(now, balance.Outcome{Result: balance.Success})
			}
		})
	}
}
