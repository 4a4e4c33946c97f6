package sim

import (
	"math"
	"time"

	"github.com/shardd/shardd/balance"
)

// Sim is one run. It is not for concurrent use.
type Sim struct {
	cfg     Config
	now     int64
	order   uint32
	queue   queue
	servers []server
	timers  []timed

	requests []request
	free     int32 // first free request, -1 for none

	arrivals, work, who, chance *Dice // streams
	next                        int64 // arrival
	arriving                    bool
	counting                    bool // within the window
	open                        int  // counted requests that have not ended

	stats stats
}

// request is an open request, or a free place for one.
type request struct {
	ticket  balance.Ticket
	arrived int64
	work    int64
	token   int64
	client  int32
	server  int32
	class   int32
	next    int32 // waiting, or free
	counted bool
}

// timed is a function that is called at a time, once or again.
type timed struct {
	f     func()
	every int64
}

// New returns a run at time 0. The error wraps ErrConfig.
func New(cfg Config) (*Sim, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Service == nil {
		cfg.Service = Exponential(1)
	}
	s := &Sim{cfg: cfg, free: -1, arriving: cfg.Rate > 0, servers: make([]server, len(cfg.Servers))}
	for i, v := range cfg.Servers {
		s.servers[i].init(v)
	}
	for i, stream := range []**Dice{&s.arrivals, &s.work, &s.who, &s.chance} {
		*stream = NewDice(cfg.Seed, uint64(i))
	}
	s.stats.init(cfg)
	s.schedule(int64(cfg.Warmup), mark, 0)
	s.schedule(int64(cfg.Warmup+cfg.Window), mark, 1)
	if s.arriving {
		s.next = s.gap()
	}
	return s, nil
}

// Now returns the time.
func (s *Sim) Now() time.Duration { return time.Duration(s.now) }

// Load returns how many requests a server holds, waiting or in service.
func (s *Sim) Load(server int) int { return int(s.servers[server].load) }

// Served returns how many requests a server has ended.
func (s *Sim) Served(server int) int { return s.servers[server].served }

// Busy returns for how long a server has worked, in parts of all of it.
func (s *Sim) Busy(server int) time.Duration {
	return time.Duration(s.servers[server].busyUntil(s.now))
}

// SetRate changes a server's rate. A request that FIFO or Delay serves already
// keeps the time that it was given.
func (s *Sim) SetRate(server int, rate float64) {
	v := &s.servers[server]
	if v.discipline == Sharing {
		v.advance(s.now)
		v.rate = rate
		s.share(server)
		return
	}
	v.rate = rate
}

// At calls f at a time; a time that has passed is now.
func (s *Sim) At(t time.Duration, f func()) { s.timer(t, timed{f: f}) }

// Every calls f at 0, period, 2 period and so on, before what else happens at
// those times; period must be above 0. Call it before Run.
func (s *Sim) Every(period time.Duration, f func()) { s.timer(0, timed{f, int64(period)}) }

func (s *Sim) timer(t time.Duration, f timed) {
	s.timers = append(s.timers, f)
	s.schedule(max(s.now, int64(t)), timer, uint32(len(s.timers)-1))
}

func (s *Sim) schedule(at int64, kind, arg uint32) uint32 {
	s.order++
	if at < s.now { // beyond what can be counted: the end of time
		at = math.MaxInt64
	}
	s.queue.push(event{at, s.order, arg<<kindBits | kind})
	return s.order
}

func (s *Sim) gap() int64 {
	var gap float64
	if s.cfg.Gap == nil {
		gap = s.arrivals.Exp()
	} else {
		gap = s.cfg.Gap(s.arrivals)
	}
	return nanoseconds(gap / s.cfg.Rate)
}

// nanoseconds returns a time in units as what the clock counts, within what it can
// count; what is not a number is 0.
func nanoseconds(units float64) int64 {
	if !(units > 0) {
		return 0
	}
	return int64(min(units*float64(Unit), float64(longest)))
}

// Run plays the run to the end of the window, and on until the last counted
// request has ended. Arrivals end with the window.
func (s *Sim) Run() *Result {
	for !s.stats.ended || s.open > 0 {
		if !s.step() {
			break
		}
	}
	return s.stats.result(s)
}

// step lets the next thing happen; false if there is none.
func (s *Sim) step() bool {
	e, ok := s.queue.top()
	if s.arriving && (!ok || s.next < e.at) {
		s.now = s.next
		s.next += s.gap()
		client := 0
		if n := len(s.cfg.Clients); n > 1 {
			client = s.who.Below(n)
		}
		s.Send(client, 0)
		return true
	}
	if !ok {
		return false
	}
	s.now = e.at
	s.queue.take()
	switch arg := e.what >> kindBits; e.what & kindMask {
	case finish:
		s.finish(int32(arg))
	case shared:
		s.sharedEnd(int(arg), e.order)
	case timer:
		s.ring(arg)
	case mark:
		s.marked(arg == 1)
	}
	return true
}

func (s *Sim) ring(i uint32) {
	t := s.timers[i]
	if t.every > 0 && s.arrivesLater() {
		s.schedule(s.now+t.every, timer, i)
	}
	t.f()
}

// arrivesLater tells whether there is anything to come for which a repeated
// timer matters.
func (s *Sim) arrivesLater() bool { return !s.stats.ended || s.open > 0 }

func (s *Sim) marked(end bool) {
	s.counting = !end
	if end {
		s.arriving = false
		s.stats.end(s.now)
		return
	}
	s.stats.begin(s.now)
}

// Send lets a client send a request now.
func (s *Sim) Send(client int, class int32) {
	c := &s.cfg.Clients[client]
	t, err := c.Picker.Pick(time.Duration(s.now), s.chance.Bits(), nil)
	if err != nil {
		if s.counting {
			s.stats.refused++
		}
		if s.cfg.Refused != nil {
			s.cfg.Refused(client, err)
		}
		return
	}
	to := c.Server(t.Index())
	i := s.request()
	r := &s.requests[i]
	*r = request{ticket: t, arrived: s.now, client: int32(client), server: int32(to), class: class, next: -1, counted: s.counting}
	if s.counting {
		s.open++
		s.stats.arrivals++
	}
	s.arrive(i, r)
	if s.cfg.Sent != nil {
		s.cfg.Sent(client, to)
	}
}

// request returns a free place.
func (s *Sim) request() int32 {
	if i := s.free; i >= 0 {
		s.free = s.requests[i].next
		return i
	}
	s.requests = append(s.requests, request{})
	return int32(len(s.requests) - 1)
}

// done ends request i.
func (s *Sim) done(i int32, result balance.Result, service int64) {
	r := s.requests[i]
	s.requests[i].next, s.free = s.free, i
	took := s.now - r.arrived
	v := &s.servers[r.server]
	r.ticket.Done(time.Duration(s.now), balance.Outcome{
		Result: result, Service: time.Duration(service), Timeout: s.cfg.Timeout,
		Queue: float64(v.load), HasQueue: true,
	})
	if r.counted {
		s.open--
		counted := took
		if s.cfg.Waiting {
			counted -= service
		}
		s.stats.sample(counted, result)
	}
	if s.cfg.Ended != nil {
		s.cfg.Ended(End{
			Client: int(r.client), Server: int(r.server), Class: r.class, Token: r.token,
			At: time.Duration(s.now), Took: time.Duration(took), Result: result,
		})
	}
}
