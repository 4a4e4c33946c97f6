package lalb

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
	"github.com/shardd/shardd/internal/splitmix"
)

const ms = time.Millisecond

var success = balance.Outcome{Result: balance.Success}

func newPicker(tb testing.TB, n int, cfg Config) *Picker {
	tb.Helper()
	p, err := New(balancetest.NewSet(tb, balancetest.Equal(n)...), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestPunishment checks the rule for requests in flight against its formula:
// base * p div d from d = p on, p = 1.5 * average latency. The recording of brpc
// has no such moment.
func TestPunishment(t *testing.T) {
	f := func(base, avg int64, starts []int64, now int64, l limits, want int64) {
		t.Helper()
		s := newServer(base)
		s.avg.Store(avg)
		for _, b := range starts {
			s.enter(b)
		}
		if got := s.weight(now, l); got != want {
			t.Errorf("base %d, average %d us, starts %v, at %d: weight %d, want %d", base, avg, starts, now, got, want)
		}
	}
	brpc := limits{least: minWeight}
	f(1_000_000, 1001, nil, 9_000_000, brpc, 1_000_000)
	f(1_000_000, 1001, []int64{5000}, 6500, brpc, 1_000_000)           // d = 1500, p = 1501
	f(1_000_000, 1001, []int64{5000}, 6501, brpc, 1_000_000)           // d = p
	f(1_000_000, 1001, []int64{5000}, 6502, brpc, 1_000_000*1501/1502) // just behind
	f(1_000_000, 1001, []int64{5000}, 8002, brpc, 1_000_000*1501/3002) // twice
	f(1_000_000, 1001, []int64{0, 5001}, 5502, brpc, 1_000_000*1501/3002)
	f(1_000_000, 1000, []int64{5000}, 5000+1_500_000_000, brpc, 1000) // the least weight
	f(1_000_000, 0, []int64{0}, 10_000_000, brpc, 1_000_000)          // no answer yet: never
	f(1_000_000_000, 0, []int64{0}, 10_000_000, limits{least: minWeight, cold: 1000}, 150_000)
	f(1_000_000, 1000, []int64{0}, 10_000_000, limits{least: 300_000}, 300_000)
	f(math.MaxInt64/2, math.MaxInt64/8, []int64{0}, math.MaxInt64/2, brpc, 3<<59) // no overflow: 3/16 of 2^63
}

// TestDown: a draw that falls on a node which is down lowers its base weight to
// the mean, and goes on behind what remains of it; a node that weighs less keeps
// its weight, and the draw is made again.
func TestDown(t *testing.T) {
	set := balancetest.NewSet(t, 1, 1, 1)
	members := []balance.Member{set.Member(0), set.Member(1), set.Member(2)}
	members[0].Down = true
	p, err := New(balancetest.SetOf(t, members...), Config{})
	if err != nil {
		t.Fatal(err)
	}
	weigh := func(i int, w int64) {
		p.tree.leaves[i].server.base.Store(w)
		p.tree.set(i, w)
	}
	weigh(0, 9_000_000)
	weigh(1, 2_000_000)
	weigh(2, 1_000_000)
	// The tree is 0 with 1 on its left and 2 on its right: draws from 2,000,000 on
	// fall on 0. Its new weight is the mean, 4,000,000.
	if i, rest := p.find(p.tree, 6_100_000, 12_000_000, 0); i != 2 || rest != 100_000 {
		t.Errorf("the draw goes to %d with %d left, want 2 with 100000", i, rest)
	}
	if got := p.tree.leaves[0].server.base.Load(); got != 4_000_000 || p.tree.total.Load() != 7_000_000 {
		t.Errorf("base %d and total %d, want the mean, 4000000, and 7000000", got, p.tree.total.Load())
	}
	if i, _ := p.find(p.tree, 5_000_000, 12_000_000, 0); i != -1 {
		t.Errorf("a draw on what remains of a node that is down goes to %d, want another draw", i)
	}
	checkSums(t, p.tree)
}

// TestErrors checks the charge of a failed attempt against its formula.
func TestErrors(t *testing.T) {
	const timeout = 500 * ms
	f := func(o balance.Outcome, latency, want int64) {
		t.Helper()
		s := newServer(scaleUnit)
		s.learn(0, 1000, success) // so that there is a last answer
		s.learn(1000, 1000+latency, o)
		if got := s.newest().sum - 1000; got != want {
			t.Errorf("%+v after %d us is charged %d us, want %d", o, latency, got, want)
		}
	}
	bad := func(attempts, left uint8) balance.Outcome {
		return balance.Outcome{Result: balance.Failure, Timeout: timeout, Attempts: attempts, Left: left}
	}
	f(bad(1, 0), 100, 500_000)
	f(bad(0, 0), 100, 500_000)
	f(bad(1, 1), 100, (120+500_000)/2)
	f(bad(2, 1), 101, (121+2*500_000)/3)
	f(balance.Outcome{Result: balance.Failure}, 100, 100) // no time-out known
	s := newServer(scaleUnit)
	s.learn(0, 100, bad(1, 3))
	if got := s.newest().sum; got != 500_000 {
		t.Errorf("the first answer, an error, is charged %d us, want the time-out", got)
	}
}

// TestSumsAddUp: whatever happens, every sum of the tree is that of its leaves.
func TestSumsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "nodes")
		members := make([]balance.Member, n)
		for i := range members {
			members[i] = balance.Member{Node: balance.NewNode(fmt.Sprint(i), 0), Weight: 1}
		}
		set, err := balance.NewSet(members)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(set, Config{})
		if err != nil {
			t.Fatal(err)
		}
		var open []balance.Ticket
		now := time.Duration(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, int(20*ms)).Draw(t, "dt"))
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op < 5 || len(open) == 0:
				tk, err := p.Pick(now, rapid.Uint64().Draw(t, "seed"), nil)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, tk)
			case op < 9:
				o := balance.Outcome{Result: balance.Result(rapid.IntRange(0, 4).Draw(t, "result")), Timeout: 500 * ms}
				open[0].Done(now, o)
				open = open[1:]
			default:
				members[rapid.IntRange(0, n-1).Draw(t, "restart")].Node = balance.NewNode("new", 1)
				if set, err = balance.NewSet(members); err != nil {
					t.Fatal(err)
				}
				next, err := p.Next(set)
				if err != nil {
					t.Fatal(err)
				}
				p = next.(*Picker)
			}
			checkSums(t, p.tree)
		}
	})
}

func checkSums(t interface{ Fatalf(string, ...any) }, tr *tree) {
	var sum func(i int) int64
	sum = func(i int) int64 {
		if i >= len(tr.leaves) {
			return 0
		}
		left := sum(2*i + 1)
		if got := tr.leaves[i].left.Load(); got != left {
			t.Fatalf("left of leaf %d is %d, its leaves add up to %d", i, got, left)
		}
		return left + tr.leaves[i].weight.Load() + sum(2*i+2)
	}
	if got := tr.total.Load(); got != sum(0) {
		t.Fatalf("total is %d, the leaves add up to %d", got, sum(0))
	}
}

// TestConcurrentSums: after any race, the sums add up and nothing is in flight.
func TestConcurrentSums(t *testing.T) {
	p := newPicker(t, 13, Config{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for k := range 2000 {
				now := time.Duration(k) * ms
				tk, err := p.Pick(now, uint64(k*4+g), nil)
				if err != nil {
					t.Error(err)
					return
				}
				tk.Done(now+time.Duration(1+tk.Index())*ms, success)
			}
		})
	}
	wg.Wait()
	checkSums(t, p.tree)
	for i := range p.tree.leaves {
		if s := p.tree.leaves[i].server; s.count.Load() != 0 || s.begin.Load() != 0 {
			t.Errorf("leaf %d has %d in flight that began at %d in sum when idle", i, s.count.Load(), s.begin.Load())
		}
	}
}

// TestExpiredLeave: picks that expire leave the sums of start times, to within
// what their slots know of the start.
func TestExpiredLeave(t *testing.T) {
	p := newPicker(t, 1, Config{})
	for k := range 1000 {
		if _, err := p.Pick(time.Duration(k)*777*time.Microsecond, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	p.Set().Expire(time.Hour, time.Minute)
	s := p.tree.leaves[0].server
	if s.count.Load() != 0 || math.Abs(float64(s.begin.Load())) > 50_000 {
		t.Errorf("%d in flight that began at %d us in sum after 1000 picks expired", s.count.Load(), s.begin.Load())
	}
}

// TestCold: a node that never answers keeps the mean weight; with ColdLatency it
// does not.
func TestCold(t *testing.T) {
	f := func(cfg Config, least, most float64) {
		t.Helper()
		p := newPicker(t, 4, cfg)
		hung := 0
		for k := range 20_000 {
			now := time.Duration(k) * ms
			tk, err := p.Pick(now, uint64(k), nil)
			if err != nil {
				t.Fatal(err)
			}
			if tk.Index() == 3 {
				hung++
				continue
			}
			tk.Done(now+5*ms, success)
		}
		if share := float64(hung) / 20_000; share < least || share > most {
			t.Errorf("%+v: a node that never answers gets %.4f of the picks, want %v to %v", cfg, share, least, most)
		}
	}
	f(Config{}, 0.5, 1) // its weight of the start is far above what the others measure
	f(Config{ColdLatency: 10 * ms}, 0, 0.2)
}

func TestConfigRefused(t *testing.T) {
	set := balancetest.NewSet(t, 1)
	for _, cfg := range []Config{{Floor: -1}, {Floor: 1.5}, {Floor: math.NaN()}, {ColdLatency: -1}} {
		if _, err := New(set, cfg); !errors.Is(err, balance.ErrInvalid) {
			t.Errorf("%+v: error %v, want ErrInvalid", cfg, err)
		}
	}
}

// done is a request that ends at a time.
type done struct {
	at     time.Duration
	order  int
	ticket balance.Ticket
}

type queue []done

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(done)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// TestClosedLoop: fifty callers, servers of 1, 2 and 3 ms: nearly all requests go
// to the first. brpc's own code has 99.99 %.
func TestClosedLoop(t *testing.T) {
	p := newPicker(t, 3, Config{})
	var q queue
	dice := splitmix.Source(7)
	order, counts := 0, [3]int{}
	send := func(now time.Duration) {
		tk, err := p.Pick(now, dice.Next(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if now > 4*time.Second {
			counts[tk.Index()]++
		}
		order++
		heap.Push(&q, done{at: now + time.Duration(1+tk.Index())*ms, order: order, ticket: tk})
	}
	for k := range 50 {
		send(time.Duration(k) * 7 * time.Microsecond)
	}
	for q[0].at < 6*time.Second {
		d := heap.Pop(&q).(done)
		d.ticket.Done(d.at, success)
		send(d.at)
	}
	total := counts[0] + counts[1] + counts[2]
	if share := float64(counts[0]) / float64(total); share < 0.999 {
		t.Errorf("the fastest server gets %.5f of %d requests, want more than 99.9 %%", share, total)
	}
}

func BenchmarkPickDone(b *testing.B) {
	for _, n := range []int{10, 100, 1024, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p := newPicker(b, n, Config{})
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 10 * time.Microsecond
				tk, _ := p.Pick(now, uint64(now), nil)
				now += 10 * time.Microsecond
				tk.Done(now, success)
			}
		})
	}
}

// The floor is a part of the mean as it is now: a node whose weight was set in an
// outage, when the mean was small, gets its share when others are well again.
func TestFloorRises(t *testing.T) {
	const floor, picks = 0.1, 20_000
	set := balancetest.NewSet(t, 1, 1, 1)
	p, err := New(set, Config{Floor: floor})
	if err != nil {
		t.Fatal(err)
	}
	slow := set.Node(0)
	now := time.Duration(0)
	for k := range 30 { // an outage: all answer after hours
		now += time.Second
		tk, err := p.Pick(now, uint64(k), nil)
		if err != nil {
			t.Fatal(err)
		}
		tk.Done(now+10*time.Hour, success)
	}
	got := 0
	for k := range picks { // a thousand a second
		now += time.Millisecond
		tk, err := p.Pick(now, uint64(k), nil)
		if err != nil {
			t.Fatal(err)
		}
		if tk.Node() == slow {
			got++
			tk.Done(now, balance.Outcome{}) // cancelled: it learns nothing
			continue
		}
		tk.Done(now+ms, success)
	}
	if want := floor / 3 * picks; float64(got) < 0.8*want {
		t.Errorf("the slow node got %d of %d picks, want %.0f at least", got, picks, want)
	}
}
