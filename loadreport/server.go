package loadreport

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance/prequal"
)

// Config configures a Server. The zero value takes the defaults.
type Config struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// CPU returns the processor time that the process has used so far and how
	// many processors it may use; nil asks the operating system.
	CPU func() (used time.Duration, processors float64)
}

// Server counts a server's load. Make one with New. Safe for concurrent use.
type Server struct {
	now     func() time.Time
	level   *prequal.Server // latency by level in flight
	cost    atomic.Int64
	rates   rates
	cpu     cpu
	util    atomic.Uint64 // bits of a float64
	memory  atomic.Uint64
	mu      sync.Mutex
	named   map[string]float64
	started time.Time
}

// New returns a server that has served nothing.
func New(cfg Config) *Server {
	s := &Server{now: cfg.Now, level: prequal.NewServer(), named: make(map[string]float64)}
	if s.now == nil {
		s.now = time.Now
	}
	s.cpu.read = cfg.CPU
	if s.cpu.read == nil {
		s.cpu.read = processTime
	}
	s.started = s.now()
	s.cpu.last = s.started
	s.cpu.used, _ = s.cpu.read()
	return s
}

// Request is one request under way. The zero value counts nothing.
type Request struct {
	server *Server
	cost   int64
	level  int64
	start  time.Time
}

// Begin counts a request of this cost (at least 1). End it with Done.
func (s *Server) Begin(cost int64) Request {
	cost = max(1, min(cost, 1<<32))
	s.cost.Add(cost)
	return Request{server: s, cost: cost, level: s.level.Begin(), start: s.now()}
}

// Report returns the server's report without this request, as it goes into the
// request's answer.
func (r Request) Report() Report {
	if r.server == nil {
		return Report{}
	}
	rep := r.server.Report()
	rep.InFlight = max(0, rep.InFlight-r.cost)
	rep.Service = r.server.now().Sub(r.start)
	return rep
}

// Done ends the request. failed counts it as an error. Call it once.
func (r Request) Done(failed bool) {
	if r.server == nil {
		return
	}
	now := r.server.now()
	r.server.cost.Add(-r.cost)
	r.server.level.End(r.level, now.Sub(r.start))
	r.server.rates.count(now.Sub(r.server.started), failed)
}

// Report returns what the server says of itself at the moment.
func (s *Server) Report() Report {
	now := s.now()
	_, latency := s.level.Load()
	r := Report{InFlight: max(0, s.cost.Load()), HasInFlight: true, Latency: latency, CPU: s.cpu.use(now),
		Memory: math.Float64frombits(s.memory.Load()), Utilization: math.Float64frombits(s.util.Load())}
	r.QPS, r.EPS = s.rates.of(now.Sub(s.started))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.named) > 0 {
		r.Named = maps.Clone(s.named)
	}
	return r
}

// Set sets a named value, which stays until it is set anew; NaN takes it out. Names
// are letters, digits, '_', '.' and '-', and not in_flight, latency_seconds or
// service_seconds; others are left out of reports.
func (s *Server) Set(name string, v float64) {
	if !validName(name) || name == metricInFlight || name == metricLatency || name == metricService {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if math.IsNaN(v) {
		delete(s.named, name)
		return
	}
	s.named[name] = v
}

// SetUtilization says how full the application finds itself, 1 being full: what
// gRPC's weighted_round_robin prefers to the processor's use. Negative values and
// those that are not numbers mean 0, unknown.
func (s *Server) SetUtilization(v float64) { s.util.Store(math.Float64bits(positive(v))) }

// SetMemory says how full the memory is, 1 being full.
func (s *Server) SetMemory(v float64) { s.memory.Store(math.Float64bits(positive(v))) }

func positive(v float64) float64 {
	if v > 0 && !math.IsInf(v, 1) {
		return v
	}
	return 0
}

func validName(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return name != "" && len(name) <= 128
}

// window is how many whole seconds rates are taken over.
const window = 10

// rates counts requests by second, in a ring of a few more than the window.
type rates struct {
	seconds [window + 2]struct{ second, all, failed atomic.Int64 }
}

func (r *rates) count(at time.Duration, failed bool) {
	sec := int64(at / time.Second)
	b := &r.seconds[sec%int64(len(r.seconds))]
	if old := b.second.Load(); old != sec && b.second.CompareAndSwap(old, sec) {
		b.all.Store(0) // what others count at this very moment may be lost
		b.failed.Store(0)
	}
	b.all.Add(1)
	if failed {
		b.failed.Add(1)
	}
}

// of returns the rates over the last window that has been seen, without the second
// that is under way unless it is the first.
func (r *rates) of(at time.Duration) (qps, eps float64) {
	now := int64(at / time.Second)
	var all, failed int64
	from := max(0, now-window)
	for i := range r.seconds {
		b := &r.seconds[i]
		if s := b.second.Load(); s >= from && (s < now || now == 0) {
			all += b.all.Load()
			failed += b.failed.Load()
		}
	}
	span := float64(now - from)
	if now == 0 {
		span = max(at.Seconds(), .1)
	}
	return float64(all) / span, float64(failed) / span
}

// cpu is the processor's use over the last second or more.
type cpu struct {
	read func() (time.Duration, float64)
	mu   sync.Mutex
	last time.Time
	used time.Duration
	now  atomic.Uint64 // bits of a float64
}

func (c *cpu) use(now time.Time) float64 {
	if c.mu.TryLock() {
		if since := now.Sub(c.last); since >= time.Second {
			used, n := c.read()
			c.now.Store(math.Float64bits(max(0, float64(used-c.used)) / float64(since) / max(n, 1e-3)))
			c.last, c.used = now, used
		}
		c.mu.Unlock()
	}
	return math.Float64frombits(c.now.Load())
}
