package lalb

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
)

const (
	window = 128 // answers that a weight is made from

	// scaleUnit is a weight of 1 request per second and microsecond of latency,
	// such that no product of the formulas exceeds 63 bits.
	scaleUnit = math.MaxInt64 / 72_000_000 / (window - 1)

	minWeight = 1000
	second    = 1_000_000 // microseconds
)

// server is what is known of one node. It outlives pickers.
type server struct {
	// Read and written by picks. begin is the sum of the start times, in
	// microseconds, of count requests in flight. The two are separate words: a
	// reader between them sees a mean that is too late, which punishes nobody.
	base  atomic.Int64
	avg   atomic.Int64 // microseconds
	begin atomic.Int64
	count atomic.Int64
	slot  atomic.Int32 // in the newest tree
	_     [64 - 4*8 - 4]byte

	mu   sync.Mutex // held by Done only
	ring [window]sample
	head int // the oldest
	size int
}

// sample is an answer: the sum of all latencies with it, and when it came, in
// microseconds.
type sample struct{ sum, end int64 }

func newServer(weight int64) *server {
	s := new(server)
	s.base.Store(weight)
	return s
}

// limits are the settings that weights obey.
type limits struct {
	least int64 // weight
	cold  int64 // latency assumed before the first answer, microseconds; 0: none
}

// weight returns the weight at now: the base weight, lowered if what is in
// flight takes longer than usual.
func (s *server) weight(now int64, l limits) int64 {
	w := s.base.Load()
	if count := s.count.Load(); count > 0 {
		delay := now - s.begin.Load()/count
		avg := s.avg.Load()
		if avg == 0 {
			avg = l.cold
		}
		if usual := int64(float64(avg) * 1.5); avg > 0 && delay >= usual && delay > 0 {
			w = mulDiv(w, usual, delay)
		}
	}
	return max(w, l.least)
}

// mulDiv returns a * b / c without overflow, for a, b >= 0 and c > 0.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}

// enter counts a request that starts at begin.
func (s *server) enter(begin int64) {
	s.begin.Add(begin)
	s.count.Add(1)
}

// leave takes a request back.
func (s *server) leave(begin int64) {
	s.count.Add(-1)
	s.begin.Add(-begin)
}

// fail lowers the base weight of a node that is down to that of the others.
func (s *server) fail(mean int64) bool {
	for {
		base := s.base.Load()
		if base <= mean {
			return false
		}
		if s.base.CompareAndSwap(base, mean) {
			return true
		}
	}
}

// learn takes an answer into the average latency and the base weight. It
// reports whether there is anything new. Times are in microseconds.
func (s *server) learn(begin, end int64, o balance.Outcome) bool {
	latency := end - begin
	if latency <= 0 { // the clock went back
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Result.Bad() {
		s.addError(latency, end, o)
	} else {
		s.push(sample{sum: s.newest().sum + latency, end: end})
	}
	first, last, n := s.ring[s.head], s.newest(), int64(s.size)
	var avg int64
	rate := int64(scaleUnit) // of 1 request per second
	switch {
	case end > first.end:
		if n == window || end-first.end >= second {
			rate = max(rate, mulDiv((n-1)*second, scaleUnit, end-first.end))
		}
		avg = (last.sum - first.sum) / (n - 1)
	case n == 1:
		avg = last.sum
	default: // no time has passed, or the clock went back
		return false
	}
	s.avg.Store(avg)
	if avg <= 0 {
		return false
	}
	s.base.Store(rate / avg)
	return true
}

// addError adds the cost of a failed attempt to the last answer, so that errors
// lower throughput and raise latency. The less likely a retry is to mend it, the
// more of the time-out is charged.
func (s *server) addError(latency, end int64, o balance.Outcome) {
	timeout := max(o.Timeout.Microseconds(), latency*b2i(o.Timeout == 0))
	done, left := max(1, int64(o.Attempts)), int64(o.Left)
	cost := (left*int64(float64(latency)*1.2) + done*timeout) / (done + left)
	if s.size == 0 { // nothing is known: assume the worst
		s.push(sample{sum: max(cost, timeout), end: end})
		return
	}
	last := &s.ring[(s.head+s.size-1)%window]
	last.sum += cost
	last.end = end
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *server) newest() sample {
	if s.size == 0 {
		return sample{}
	}
	return s.ring[(s.head+s.size-1)%window]
}

// push adds an answer, in place of the oldest if the window is full.
func (s *server) push(x sample) {
	if s.size == window {
		s.head = (s.head + 1) % window
		s.size--
	}
	s.ring[(s.head+s.size)%window] = x
	s.size++
}

func micros(t time.Duration) int64 { return t.Microseconds() }
