package wrr

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
)

const (
	firstRoom  = 4       // turns computed after a change; a run that is used up doubles it
	usualRoom  = 256     // up to this
	maxWork    = 1 << 16 // node-steps of one run, some 50 us: no pick waits longer
	maxPeriod  = 4096    // turns of a period that is kept and repeated
	cycleTurns = 512     // a short period is repeated up to this, so that it seldom wraps
)

// unknown stands for a time nobody has told yet.
const unknown = math.MinInt64

// smoothState is the state of the rule between two picks. fails, accessed and
// checked are shared between states until somebody owns them.
type smoothState struct {
	current, effective []int64
	fails              []int32
	accessed, checked  []time.Duration
}

func newSmoothState(peers []peer) smoothState {
	n := len(peers)
	st := smoothState{
		current: make([]int64, n), effective: make([]int64, n), fails: make([]int32, n),
		accessed: make([]time.Duration, n), checked: make([]time.Duration, n),
	}
	for k := range peers {
		st.effective[k] = peers[k].weight
	}
	return st
}

// own makes the failure records writable.
func (st *smoothState) own() {
	st.fails = slices.Clone(st.fails)
	st.accessed, st.checked = slices.Clone(st.accessed), slices.Clone(st.checked)
}

// smoothRun is a sequence of picks computed ahead from one state, consumed by a
// cursor. It holds as long as nobody fails, nobody is excluded and now is between
// from (before it the clock has gone back) and until.
type smoothRun struct {
	_      [64]byte
	cursor atomic.Uint64
	_      [56]byte

	picks  []int32 // peers
	period int     // > 0: the picks repeat, and len(picks) is a multiple of it
	steady bool    // effective weights do not change during the run
	from   time.Duration
	until  time.Duration
	room   int
	start  smoothState
	barred []bool // peers that take no part in the run

	// While nothing changes, runs follow each other until they make a period:
	// trail has the picks before this run, origin the currents before those.
	trail  []int32
	origin []int64
}

// take consumes one turn: the peer, -1 at the end of the run, and its position.
func (r *smoothRun) take() (k, at int) {
	turn := r.cursor.Add(1) - 1
	n := uint64(len(r.picks))
	if turn < n {
		return int(r.picks[turn]), int(turn)
	}
	if r.period == 0 {
		return -1, int(n)
	}
	at = int(turn % n)
	if at == 0 { // one wrap, one subtraction: every position is drawn once
		r.cursor.Add(-n)
	}
	return int(r.picks[at]), at
}

// state returns a copy of the state before turn at; -1 is the next turn.
func (r *smoothRun) state(peers []peer, at int) smoothState {
	if at < 0 {
		at = r.position()
	}
	st := r.start
	st.current, st.effective = slices.Clone(st.current), slices.Clone(st.effective)
	if r.period > 0 {
		at %= r.period
	}
	if !r.steady {
		for range at {
			advance(peers, &st, r.barred)
		}
		return st
	}
	// Without changes of the effective weights a node has gained at * effective
	// and paid the total for each of its picks.
	var total int64
	for k := range peers {
		if !r.barred[k] {
			st.current[k] += int64(at) * st.effective[k]
			total += st.effective[k]
		}
	}
	for _, k := range r.picks[:at] {
		st.current[k] -= total
	}
	return st
}

// position returns the turn that comes next.
func (r *smoothRun) position() int {
	turn, n := r.cursor.Load(), uint64(len(r.picks))
	switch {
	case turn < n:
		return int(turn)
	case r.period > 0:
		return int(turn % n)
	}
	return int(n)
}

// advance makes one step of the rule among the peers that are not barred and
// returns the pick, -1 if there is none.
func advance(peers []peer, st *smoothState, barred []bool) int {
	best, total := -1, int64(0)
	for k := range peers {
		if barred[k] {
			continue
		}
		st.current[k] += st.effective[k]
		total += st.effective[k]
		if st.effective[k] < peers[k].weight {
			st.effective[k] = min(peers[k].weight, st.effective[k]+peers[k].one)
		}
		if best < 0 || st.current[k] > st.current[best] {
			best = k
		}
	}
	if best >= 0 {
		st.current[best] -= total
	}
	return best
}

// step makes one step at now without the excluded and the full; it starts the
// trial of a node whose FailTimeout has passed.
func (s *Smooth) step(st *smoothState, now time.Duration, exclude []*balance.Node) int {
	barred, _, _ := s.bars(st, now)
	for k := range s.peers {
		i := int(s.peers[k].index)
		barred[k] = barred[k] || s.full(i) || slices.Contains(exclude, s.set.Node(i))
	}
	best := advance(s.peers, st, barred)
	if best >= 0 && st.fails[best] > 0 && decay.Elapsed(st.checked[best], now) > s.cfg.FailTimeout {
		st.own()
		st.checked[best] = now
	}
	return best
}

// bars tells which peers are down or barred by failures at now, until when that
// holds, and whether a pick may start a trial, which changes the state.
func (s *Smooth) bars(st *smoothState, now time.Duration) (barred []bool, until time.Duration, trial bool) {
	barred, until = make([]bool, len(s.peers)), math.MaxInt64
	for k := range s.peers {
		switch {
		case s.peers[k].down:
			barred[k] = true
		case st.fails[k] == 0 || len(s.peers) == 1:
		case now == unknown || decay.Elapsed(st.checked[k], now) > s.cfg.FailTimeout:
			trial = true
		default:
			if now < st.checked[k] { // the clock went back
				st.own()
				st.checked[k], st.accessed[k] = now, min(st.accessed[k], now)
			}
			until = min(until, st.checked[k]+s.cfg.FailTimeout)
			barred[k] = int(st.fails[k]) >= s.cfg.MaxFails
		}
	}
	return barred, until, trial
}

// build computes a run of at most room turns from st, which it takes over. prev
// is the run before, if it was used up to its end and k, one more pick, made st;
// nil after any change.
func (s *Smooth) build(st smoothState, now time.Duration, room int, prev *smoothRun, k int) *smoothRun {
	r := &smoothRun{start: st}
	var trial bool
	r.barred, r.until, trial = s.bars(&r.start, now)
	if r.from = math.MinInt64; r.until < math.MaxInt64 {
		r.from = r.until - s.cfg.FailTimeout
	}
	if trial {
		return r // no turns: every pick makes its step by itself
	}
	period, steady := s.period(&r.start, r.barred)
	r.steady, r.room = steady, min(room, max(firstRoom, maxWork/max(1, len(s.peers))))
	r.origin = r.start.current
	if prev != nil && prev.steady && steady && prev.origin != nil {
		r.trail = append(slices.Concat(prev.trail, prev.picks), int32(k))
		r.origin = prev.origin
	}
	if len(r.trail) >= period {
		r.trail, r.origin = nil, r.start.current
	}
	if steady && period > 0 {
		r.room = min(r.room, period-len(r.trail))
	}
	end := r.simulate(s.peers)
	if steady && len(r.picks) > 0 && len(r.trail)+len(r.picks) == period && slices.Equal(end, r.origin) {
		r.period = period
		r.picks = slices.Repeat(append(r.picks, r.trail...), max(1, cycleTurns/period))
		r.trail = nil
	}
	return r
}

// simulate fills in the picks of room turns and returns the currents after them.
func (r *smoothRun) simulate(peers []peer) []int64 {
	end := r.start
	end.current, end.effective = slices.Clone(end.current), slices.Clone(end.effective)
	if r.steady {
		r.simulateSteady(&end)
		return end.current
	}
	for range r.room {
		k := advance(peers, &end, r.barred)
		if k < 0 {
			break
		}
		r.picks = append(r.picks, int32(k))
	}
	return end.current
}

// simulateSteady is simulate for effective weights that do not change: the same
// steps on arrays without the barred, at a third of the time.
func (r *smoothRun) simulateSteady(end *smoothState) {
	var active []int32
	var current, effective []int64
	var total int64
	for k, barred := range r.barred {
		if !barred {
			active = append(active, int32(k))
			current, effective = append(current, end.current[k]), append(effective, end.effective[k])
			total += end.effective[k]
		}
	}
	if len(active) == 0 {
		return
	}
	r.picks = make([]int32, r.room)
	for t := range r.picks {
		best, most := 0, int64(math.MinInt64)
		for j, w := range effective[:len(current)] {
			c := current[j] + w
			current[j] = c
			if c > most {
				best, most = j, c
			}
		}
		current[best] -= total
		r.picks[t] = active[best]
	}
	for j, k := range active {
		end.current[k] = current[j]
	}
}

// period returns the number of turns after which the picks may repeat, 0 if it
// is above maxPeriod, and whether all effective weights are whole.
func (s *Smooth) period(st *smoothState, barred []bool) (turns int, steady bool) {
	var divisor, total uint64
	for k := range s.peers {
		if barred[k] {
			continue
		}
		if st.effective[k] < s.peers[k].weight {
			return 0, false
		}
		divisor = gcd(divisor, uint64(st.effective[k]))
		total += uint64(st.effective[k])
	}
	if divisor == 0 || total/divisor > maxPeriod {
		return 0, true
	}
	return int(total / divisor), true
}
