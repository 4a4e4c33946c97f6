package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// historySteps is how many operations each client of a history makes.
const historySteps = 25

// testHistories: concurrent operations of two processes have an order that
// explains every answer, edits and publications in one, presences in the other.
func testHistories(t *testing.T, s *suite) {
	d := declared("c", historyNodes/2)
	_, first := s.create(t, d)
	l := s.lead(t, "c")
	edits, lives := &history{began: time.Now()}, &history{began: time.Now()}
	if s.Disturb != nil {
		defer s.Disturb(t)()
	}
	var wg sync.WaitGroup
	for client := range 6 {
		directory := s.Directory
		if client%2 == 1 {
			directory = s.Other
		}
		c := &historian{suite: s, id: client, store: directory.Open("c"), registrar: registrar(t, directory), roster: roster(t, directory)}
		wg.Go(func() { c.edits(edits, rand.New(rand.NewPCG(uint64(client), 1))) })
		wg.Go(func() { c.presences(lives, rand.New(rand.NewPCG(uint64(client), 2))) })
		if client%2 == 0 { // the leader's process: two of its goroutines
			wg.Go(func() { c.publications(t, edits, l) })
		}
	}
	wg.Wait()
	edits.check(t, declaredModel(declaredOf(first)), "edits and publications")
	lives.check(t, liveModel(), "presences")
}

// historian is one client of a history.
type historian struct {
	*suite
	id        int
	store     membership.Store
	registrar membership.Registrar
	roster    membership.Roster
}

func (c *historian) timeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, 5*time.Second)
}

// load reads, and records that.
func (c *historian) load(h *history) (membership.State, bool) {
	ctx, cancel := c.timeout()
	defer cancel()
	called := h.now()
	s, err := c.store.Load(ctx)
	out := outcome(err)
	out.state = declaredOf(s)
	h.record(c.id, called, op{kind: "load"}, out)
	return s, err == nil
}

// edits makes edits, some of them from a generation that was read.
func (c *historian) edits(h *history, r *rand.Rand) {
	for range historySteps {
		in := op{kind: []string{"weight", "weight", "add", "remove"}[r.IntN(4)], node: r.IntN(historyNodes)}
		if r.IntN(3) == 0 {
			if s, ok := c.load(h); ok {
				in.expect = s.Generation
			}
		}
		e := membership.RemoveNode(node(in.node).ID)
		switch in.kind {
		case "weight":
			in.weight = 1 + r.Uint32N(100)
			e = membership.SetWeight(node(in.node).ID, in.weight)
		case "add":
			in.weight = node(in.node).Weight
			e = membership.AddNode(node(in.node))
		}
		e.Expect = in.expect
		ctx, cancel := c.timeout()
		called := h.now()
		s, err := c.store.Declare(ctx, e)
		out := outcome(err)
		out.state = declaredOf(s)
		h.record(c.id, called, in, out)
		cancel()
	}
}

// publications answers what it reads, as a controller does.
func (c *historian) publications(t *testing.T, h *history, l membership.Leadership) {
	for range historySteps / 2 {
		s, ok := c.load(h)
		if !ok {
			continue
		}
		p := Next(t, s)
		ctx, cancel := c.timeout()
		called := h.now()
		err := c.store.Publish(ctx, l, p)
		h.record(c.id, called, op{kind: "publish", gen: p.Generation, from: p.Expect.Digest, to: p.Next.Digest()}, outcome(err))
		cancel()
	}
}

// presences registers nodes where nobody else has, and ends that again.
func (c *historian) presences(h *history, r *rand.Rand) {
	held := map[int]membership.Presence{}
	owners := map[int]string{}
	for step := range historySteps {
		n := r.IntN(historyNodes)
		switch {
		case r.IntN(3) == 0:
			c.roll(h)
		case held[n] != nil:
			c.end(h, held[n], op{kind: "end", node: n, owner: owners[n]})
			delete(held, n)
		default:
			owners[n] = fmt.Sprintf("%032x", c.id<<16|step)
			if p := c.attach(h, op{kind: "attach", node: n, owner: owners[n]}); p != nil {
				held[n] = p
			}
		}
	}
	for n, p := range held {
		c.end(h, p, op{kind: "end", node: n, owner: owners[n]})
	}
}

func (c *historian) attach(h *history, in op) membership.Presence {
	ctx, cancel := c.timeout()
	defer cancel()
	id, holder := node(in.node).ID, ""
	called := h.now()
	p, err := c.registrar.Attach(ctx, id, time.Minute, func(cluster topology.ClusterID, held *membership.Live) (membership.Live, error) {
		if holder = ""; held != nil {
			holder = held.Owner
			return membership.Live{}, membership.ErrDuplicate
		}
		return membership.Live{ID: id, Cluster: cluster, Owner: in.owner, Incarnation: 1}, nil
	})
	out := outcome(err)
	out.held = holder
	h.record(c.id, called, in, out)
	return p
}

func (c *historian) end(h *history, p membership.Presence, in op) {
	ctx, cancel := c.timeout()
	defer cancel()
	called := h.now()
	h.record(c.id, called, in, outcome(p.End(ctx)))
}

func (c *historian) roll(h *history) {
	ctx, cancel := c.timeout()
	defer cancel()
	called := h.now()
	r, err := c.roster.Roll(ctx)
	out := outcome(err)
	for _, l := range r.Live {
		for i := range historyNodes {
			if l.ID == node(i).ID {
				out.live[i] = l.Owner
			}
		}
	}
	h.record(c.id, called, op{kind: "roll"}, out)
}
