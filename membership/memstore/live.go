package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

var (
	_ membership.Registrar = (*clusterStore)(nil)
	_ membership.Roster    = (*clusterStore)(nil)
)

// presence is a record under a lease: it is there while its process renews it,
// and for ttl after the process stopped doing so.
type presence struct {
	s    *Store
	cl   *cluster
	live membership.Live
	ttl  time.Duration
	done chan struct{}
	once sync.Once
	end  *time.Timer // runs while the lease is not renewed
	dead bool        // its process is gone; see Crash
}

// Attach writes a node's record under a fresh lease; see membership.Registrar.
func (c *clusterStore) Attach(ctx context.Context, id string, ttl time.Duration, decide func(topology.ClusterID, *membership.Live) (membership.Live, error)) (membership.Presence, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memstore: register: %w", err)
	}
	if err := topology.ValidateNodeID(id); err != nil {
		return nil, fmt.Errorf("memstore: register: %w: %w", membership.ErrInvalid, err)
	}
	var p *presence
	err := c.locked("register", func(cl *cluster) error {
		if c.s.away {
			return membership.ErrUnreachable
		}
		var held *membership.Live
		if before := cl.live[id]; before != nil {
			l := before.live
			held = &l
		}
		live, err := decide(cl.state.ID, held)
		if err != nil {
			return err
		}
		if before := cl.live[id]; before != nil {
			before.remove()
		}
		p = &presence{s: c.s, cl: cl, live: live, ttl: max(ttl, time.Second), done: make(chan struct{})}
		cl.live[id] = p
		c.s.rollChanged(cl)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (s *Store) rollChanged(cl *cluster) {
	cl.rolls++
	s.notify()
}

// remove takes the record away, with the lock held.
func (p *presence) remove() {
	if p.end != nil {
		p.end.Stop()
	}
	if p.cl.live[p.live.ID] == p {
		delete(p.cl.live, p.live.ID)
		p.s.rollChanged(p.cl)
	}
	p.once.Do(func() { close(p.done) })
}

// expire lets the lease run out, with the lock held.
func (p *presence) expire() {
	if p.end != nil {
		return
	}
	p.end = time.AfterFunc(p.ttl, func() {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		p.remove()
	})
}

// Done is closed when the record is lost or given up.
func (p *presence) Done() <-chan struct{} { return p.done }

// Update replaces the record under the same lease.
func (p *presence) Update(_ context.Context, l membership.Live) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	switch {
	case p.s.away:
		return fmt.Errorf("memstore: update registration: %w", membership.ErrUnreachable)
	case p.cl.live[p.live.ID] != p:
		return fmt.Errorf("memstore: update registration: %w: the record of node %q is no longer this process's", membership.ErrConflict, p.live.ID)
	}
	p.live = l
	p.s.rollChanged(p.cl)
	return nil
}

// End deletes the record with its lease.
func (p *presence) End(context.Context) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.away {
		p.expire()
		return fmt.Errorf("memstore: leave: %w", membership.ErrUnreachable)
	}
	p.remove()
	return nil
}

// Expire ends the lease of a node at once, as its revocation or the deletion of
// its key does. It reports whether there was one.
func (s *Store) Expire(cluster, id string) bool {
	return s.withPresence(cluster, id, (*presence).remove)
}

// Crash stops the renewal of a node's lease, as the death of its process does:
// the record stays until the lease has run out. It reports whether there was
// one.
func (s *Store) Crash(cluster, id string) bool {
	return s.withPresence(cluster, id, func(p *presence) {
		p.dead = true
		p.expire()
	})
}

func (s *Store) withPresence(cluster, id string, fn func(*presence)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.clusters[cluster]
	if cl == nil || cl.live[id] == nil {
		return false
	}
	fn(cl.live[id])
	return true
}

// Away makes the store unreachable for nodes that register, or reachable again:
// while it is away registrations fail and leases are not renewed, so that they
// end after their time. One that is renewed in time lives on.
func (s *Store) Away(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
	for _, cl := range s.clusters {
		for _, p := range cl.live {
			if away {
				p.expire()
			} else if !p.dead && p.end != nil && p.end.Stop() {
				p.end = nil
			}
		}
	}
}

// Roll returns who is there; see membership.Roster.
func (c *clusterStore) Roll(ctx context.Context) (r membership.Roll, err error) {
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("memstore: roll: %w", err)
	}
	err = c.locked("roll", func(cl *cluster) error {
		r = cl.roll()
		return nil
	})
	return r, err
}

func (cl *cluster) roll() (r membership.Roll) {
	for _, id := range slices.SortedFunc(maps.Keys(cl.live), strings.Compare) {
		r.Live = append(r.Live, cl.live[id].live)
	}
	for _, id := range slices.SortedFunc(maps.Keys(cl.marks), strings.Compare) {
		r.Marks = append(r.Marks, cl.marks[id])
	}
	return r
}

// WatchRoll calls fn with the roll now and after every change.
func (c *clusterStore) WatchRoll(ctx context.Context, fn func(membership.Roll) error) error {
	last, told := uint64(0), false
	return c.s.watch(ctx, func() (func() error, error) {
		cl := c.s.clusters[c.name]
		if cl == nil {
			return nil, fmt.Errorf("memstore: watch roll: %w: %q", membership.ErrNoCluster, c.name)
		}
		if told && cl.rolls == last {
			return nil, nil
		}
		last, told = cl.rolls, true
		r := cl.roll()
		return func() error { return fn(r) }, nil
	})
}

// SetOverlay writes what the leader says of the nodes' health.
func (c *clusterStore) SetOverlay(_ context.Context, l membership.Leadership, o membership.Overlay) error {
	return c.locked("health", func(cl *cluster) error {
		if lead, ok := l.(*leadership); !ok || lead.s != c.s || c.s.leaders[c.name] != lead {
			return membership.ErrNotLeader
		}
		cl.overlay = &membership.Overlay{Bad: slices.Clone(o.Bad)}
		c.s.notify()
		return nil
	})
}

// Mark writes admission's memory under the leadership.
func (c *clusterStore) Mark(_ context.Context, l membership.Leadership, marks []membership.Mark) error {
	return c.locked("mark", func(cl *cluster) error {
		if lead, ok := l.(*leadership); !ok || lead.s != c.s || c.s.leaders[c.name] != lead {
			return membership.ErrNotLeader
		}
		for _, m := range marks {
			if m.Remove {
				delete(cl.marks, m.ID)
			} else {
				cl.marks[m.ID] = m
			}
		}
		c.s.rollChanged(cl)
		return nil
	})
}
