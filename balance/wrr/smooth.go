package wrr

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/internal/splitmix"
)

// SmoothConfig configures Smooth. The zero value takes turns and looks at
// nothing else.
type SmoothConfig struct {
	// MaxFails bad outcomes bar a node for FailTimeout, after which one request
	// tries it again; each of them takes weight / MaxFails (rounded down) off its
	// effective weight, which comes back by 1 a round. 0 is off; nginx's default
	// is 1.
	MaxFails int
	// FailTimeout is how long a node with MaxFails bad outcomes is barred; 0 means
	// 10 s.
	FailTimeout time.Duration
	// MaxConns is the number of requests in flight at which a node is passed
	// over; 0 is off.
	MaxConns int
}

// Smooth is nginx's smooth weighted round robin. For each eligible node in the
// order of the set
//
//	current += effective; total += effective; if effective < weight: effective++
//
// and the greatest current (the first one on a tie) is picked and lowered by
// total. 5:1:1 gives a a b a c a a. O(1) a pick where the effective weights'
// period is at most 4,096 turns, which are computed ahead; O(n) otherwise.
//
// In a period every node gets exactly its weight, spread out: a prefix of the
// picks is off by less than about one (not strictly: 1.087 for
// 1,20,20,5,13,1,9,20,3). Across the border of two periods the heaviest can come
// four times in a row. Weights that are not whole numbers are rounded to parts
// of the largest, 2^-20 of it. A set with one node is never barred. Source:
// ngx_http_upstream_round_robin.c 1.26.2; the order of picks and of recoveries
// is that of nginx, event by event, for one goroutine.
//
// Load does not matter to it: a node that answers slowly keeps its share.
type Smooth struct {
	set   *balance.Set
	cfg   SmoothConfig
	peers []peer
	place []int32 // of a member among the peers, -1 if it has no weight
	run   atomic.Pointer[smoothRun]
}

// peer is a member with a weight, down or not.
type peer struct {
	index  int32
	down   bool
	weight int64 // scaled to a whole number
	one    int64 // what 1 is on that scale
}

// NewSmooth returns a smooth weighted round robin over set. Negative settings
// are refused with ErrInvalid.
func NewSmooth(set *balance.Set, cfg SmoothConfig) (*Smooth, error) {
	if cfg.MaxFails < 0 || cfg.FailTimeout < 0 || cfg.MaxConns < 0 {
		return nil, balance.Invalidf("wrr: SmoothConfig%v has a negative setting; use 0 for off or the default", cfg)
	}
	if cfg.FailTimeout == 0 {
		cfg.FailTimeout = 10 * time.Second
	}
	s := newSmooth(set, cfg)
	s.run.Store(s.build(newSmoothState(s.peers), unknown, maxPeriod, nil, 0))
	return s, nil
}

func newSmooth(set *balance.Set, cfg SmoothConfig) *Smooth {
	s := &Smooth{cfg: cfg, peers: newPeers(set), place: make([]int32, set.Len())}
	for i := range s.place {
		s.place[i] = -1
	}
	for k := range s.peers {
		s.place[s.peers[k].index] = int32(k)
	}
	var o balance.Observer
	if cfg.MaxFails > 0 {
		o = s
	}
	s.set = set.Observed(o)
	return s
}

// newPeers lists the members with a weight, scaled to whole numbers.
func newPeers(set *balance.Set) []peer {
	largest, whole := 0.0, true
	for i := range set.Len() {
		w := set.Member(i).Weight
		largest, whole = max(largest, w), whole && w == math.Trunc(w)
	}
	scale := 1.0
	if !whole {
		_, exp := math.Frexp(largest)
		scale = math.Ldexp(1, 21-exp) // the largest becomes 2^20 or more
	}
	var peers []peer
	for i := range set.Len() {
		if m := set.Member(i); m.Weight > 0 {
			w := int64(max(1, math.Round(m.Weight*scale)))
			peers = append(peers, peer{index: int32(i), down: m.Down, weight: w, one: int64(max(1, math.Round(scale)))})
		}
	}
	return peers
}

// Pick returns the node whose turn it is.
func (s *Smooth) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	for range maxTurns {
		r, at := s.run.Load(), -1
		if len(exclude) == 0 && r.from <= now && now <= r.until {
			k, turn := r.take()
			if k >= 0 {
				i := int(s.peers[k].index)
				if !s.full(i) {
					return s.set.Take(i, now), nil
				}
				at = turn // give the turn back
			}
		}
		if k, published := s.pickExact(now, exclude, r, at); k < 0 {
			return balance.Ticket{}, s.none(exclude)
		} else if published {
			return s.set.Take(int(s.peers[k].index), now), nil
		}
	}
	// Others were quicker every time: draw at random by weight.
	dice := splitmix.Source(seed)
	i, err := s.set.Draw(&dice, exclude)
	if err != nil {
		return balance.Ticket{}, err
	}
	return s.set.Take(i, now), nil
}

func (s *Smooth) full(i int) bool {
	return s.cfg.MaxConns > 0 && s.set.Node(i).InFlight() >= s.cfg.MaxConns
}

// pickExact makes one step of the rule before turn at of run r (-1: the turn that
// comes next) and publishes another run from there, unless somebody else has
// published one meanwhile. It returns the peer, -1 if there is none.
func (s *Smooth) pickExact(now time.Duration, exclude []*balance.Node, r *smoothRun, at int) (k int, published bool) {
	room, prev := firstRoom, (*smoothRun)(nil)
	if at < 0 && len(exclude) == 0 && len(r.picks) > 0 && r.position() == len(r.picks) {
		room = min(2*r.room, usualRoom)
		if s.cfg.MaxConns == 0 { // else the step may have passed over somebody
			prev = r
		}
	}
	st := r.state(s.peers, at)
	if k = s.step(&st, now, exclude); k < 0 {
		return -1, false
	}
	return k, s.run.CompareAndSwap(r, s.build(st, now, room, prev, k))
}

// none returns the error for a step that found nobody: all nodes are barred,
// full or excluded.
func (s *Smooth) none(exclude []*balance.Node) error {
	for k := range s.peers {
		if p := &s.peers[k]; !p.down && slices.Contains(exclude, s.set.Node(int(p.index))) {
			return balance.ErrExcluded
		}
	}
	return balance.ErrNoNode
}

// Observe counts bad outcomes, and clears them when a trial went well.
func (s *Smooth) Observe(i int, _, now time.Duration, o balance.Outcome) {
	k := s.place[i]
	if k < 0 || o.Result == balance.Ignored {
		return
	}
	for {
		r := s.run.Load()
		if o.Result == balance.Success && (r.start.fails[k] == 0 || r.start.accessed[k] >= r.start.checked[k]) {
			return
		}
		st := r.state(s.peers, -1)
		s.note(&st, int(k), now, o)
		if s.run.CompareAndSwap(r, s.build(st, now, firstRoom, nil, 0)) {
			return
		}
	}
}

// note applies the end of a request to the state.
func (s *Smooth) note(st *smoothState, k int, now time.Duration, o balance.Outcome) {
	st.own()
	if !o.Result.Bad() {
		st.fails[k] = 0
		return
	}
	st.fails[k]++
	st.accessed[k], st.checked[k] = now, now
	p := &s.peers[k]
	// nginx divides whole weights; one keeps its scale.
	cut := p.weight / p.one / int64(s.cfg.MaxFails) * p.one
	if p.one > 1 {
		cut = p.weight / int64(s.cfg.MaxFails)
	}
	st.effective[k] = max(0, st.effective[k]-cut)
}

// Next returns a smooth weighted round robin over set with the same settings.
// Nodes that stay keep their place in the turn, their effective weight (by the
// ratio of the weights) and their failures.
func (s *Smooth) Next(set *balance.Set) (balance.Picker, error) {
	n := newSmooth(set, s.cfg)
	was := s.run.Load().state(s.peers, -1)
	st := newSmoothState(n.peers)
	from := set.From(s.set)
	ratio := float64(sum(n.peers)) / float64(max(1, sum(s.peers)))
	for k := range n.peers {
		i := from[n.peers[k].index]
		if i < 0 || s.place[i] < 0 {
			continue
		}
		j := s.place[i]
		old, now := &s.peers[j], &n.peers[k]
		st.current[k] = int64(math.Round(float64(was.current[j]) * ratio))
		st.effective[k] = min(now.weight, int64(math.Round(float64(was.effective[j])/float64(old.weight)*float64(now.weight))))
		st.fails[k], st.accessed[k], st.checked[k] = was.fails[j], was.accessed[j], was.checked[j]
	}
	n.run.Store(n.build(st, unknown, maxPeriod, nil, 0))
	return n, nil
}

// sum returns the peers' weights together.
func sum(peers []peer) int64 {
	var total int64
	for k := range peers {
		total += peers[k].weight
	}
	return total
}

// Set returns the set the picker was made of.
func (s *Smooth) Set() *balance.Set { return s.set }
