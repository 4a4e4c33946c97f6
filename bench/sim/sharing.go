package sim

// advance lets a processor-sharing server work up to now.
func (v *server) advance(now int64) {
	if n := len(v.jobs); n > 0 {
		v.got += float64(now-v.gotAt) * v.rate / float64(n)
	}
	v.gotAt = now
}

// admit takes a request into a processor-sharing server.
func (s *Sim) admit(v *server, i int32, r *request) {
	v.advance(s.now)
	v.jobs = append(v.jobs, job{v.got + float64(r.work), i})
	k := len(v.jobs) - 1
	for k > 0 && v.jobs[k].until < v.jobs[(k-1)/2].until {
		v.jobs[k], v.jobs[(k-1)/2] = v.jobs[(k-1)/2], v.jobs[k]
		k = (k - 1) / 2
	}
	s.share(int(r.server))
}

// share schedules a server's next end, in place of the one before.
func (s *Sim) share(server int) {
	v := &s.servers[server]
	if len(v.jobs) == 0 || v.rate <= 0 {
		v.due = 0
		return
	}
	left := max(0, v.jobs[0].until-v.got) * float64(len(v.jobs)) / v.rate
	v.due = s.schedule(s.now+int64(left+0.5), shared, uint32(server))
}

// sharedEnd ends the request that is finished, unless the event was replaced.
func (s *Sim) sharedEnd(server int, order uint32) {
	v := &s.servers[server]
	if order != v.due {
		return
	}
	v.advance(s.now)
	i := v.jobs[0].request
	v.got = max(v.got, v.jobs[0].until) // rounding
	v.removeFirst()
	s.share(server)
	r := &s.requests[i]
	s.depart(i, r, v, r.work)
}

func (v *server) removeFirst() {
	last := len(v.jobs) - 1
	v.jobs[0] = v.jobs[last]
	v.jobs = v.jobs[:last]
	for k := 0; ; {
		c := 2*k + 1
		if c >= last {
			return
		}
		if c+1 < last && v.jobs[c+1].until < v.jobs[c].until {
			c++
		}
		if v.jobs[k].until <= v.jobs[c].until {
			return
		}
		v.jobs[k], v.jobs[c] = v.jobs[c], v.jobs[k]
		k = c
	}
}
