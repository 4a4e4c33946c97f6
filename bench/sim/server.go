package sim

import (
	"math"

	"github.com/shardd/shardd/balance"
)

// server is the state of one server.
type server struct {
	discipline Discipline
	slots      int32
	limit      int32
	load       int32 // held, waiting or in service
	serving    int32
	head, tail int32 // waiting requests
	rate       float64
	served     int
	picked     int // counted arrivals

	busy   float64 // work time so far, in parts of all slots
	busyAt int64   // up to when

	// Sharing: work that each request has got since the start, the requests by
	// the amount at which they are finished, and the event that is valid.
	got   float64
	gotAt int64
	jobs  []job
	due   uint32
}

// job is a request on a processor-sharing server.
type job struct {
	until   float64
	request int32
}

func (v *server) init(c Server) {
	*v = server{discipline: c.Discipline, slots: int32(max(1, c.Slots)), limit: int32(c.Limit), rate: c.Rate, head: -1, tail: -1}
	if c.Rate == 0 {
		v.rate = 1
	}
	if c.Limit == 0 {
		v.limit = math.MaxInt32
	}
	if c.Discipline != FIFO {
		v.slots = math.MaxInt32
	}
}

// busyUntil returns the work time up to now.
func (v *server) busyUntil(now int64) float64 {
	part := float64(min(v.load, v.slots)) / float64(v.slots)
	if v.discipline != FIFO {
		part = float64(min(v.load, 1))
	}
	return v.busy + part*float64(now-v.busyAt)
}

// change adds to the load.
func (v *server) change(now int64, by int32) {
	v.busy, v.busyAt = v.busyUntil(now), now
	v.load += by
}

// arrive brings request i to its server.
func (s *Sim) arrive(i int32, r *request) {
	v := &s.servers[r.server]
	if s.cfg.Arrived != nil {
		r.token = s.cfg.Arrived(int(r.server))
	}
	var work float64
	if s.cfg.Work != nil {
		work = s.cfg.Work(int(r.server), int(v.load), s.work)
	} else {
		work = s.cfg.Service(s.work)
	}
	r.work = nanoseconds(work)
	if s.counting {
		v.picked++
	}
	if v.load >= v.limit {
		s.done(i, balance.Overload, 0)
		return
	}
	v.change(s.now, 1)
	s.stats.up(int(v.load), s.now, s.counting)
	switch {
	case v.discipline == Sharing:
		s.admit(v, i, r)
	case v.serving < v.slots:
		s.serve(v, i, r)
	default:
		v.wait(s.requests, i)
	}
}

// wait puts request i at the end of the line.
func (v *server) wait(requests []request, i int32) {
	if v.tail < 0 {
		v.head = i
	} else {
		requests[v.tail].next = i
	}
	v.tail = i
}

// serve begins with request i.
func (s *Sim) serve(v *server, i int32, r *request) {
	v.serving++
	r.work = v.duration(r.work)
	s.schedule(s.now+r.work, finish, uint32(i))
}

// duration returns how long an amount of work takes.
func (v *server) duration(work int64) int64 {
	if v.rate == 1 {
		return work
	}
	return int64(min(float64(work)/v.rate, float64(longest)))
}

// finish ends a request's service and begins with the next one.
func (s *Sim) finish(i int32) {
	r := &s.requests[i]
	v := &s.servers[r.server]
	v.serving--
	if k := v.head; k >= 0 {
		q := &s.requests[k]
		if v.head = q.next; v.head < 0 {
			v.tail = -1
		}
		s.serve(v, k, q)
	}
	s.depart(i, r, v, r.work)
}

func (s *Sim) depart(i int32, r *request, v *server, service int64) {
	s.stats.down(int(v.load), s.now)
	v.change(s.now, -1)
	v.served++
	result := balance.Success
	if s.cfg.Fate != nil {
		result = s.cfg.Fate(int(r.server), s.work)
	}
	s.done(i, result, service)
}
