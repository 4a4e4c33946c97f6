package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

var (
	_ membership.Registrar = (*cluster)(nil)
	_ membership.Roster    = (*cluster)(nil)
)

// endTimeout bounds the revocation of a lease that nobody needs any more.
const endTimeout = 2 * time.Second

// Attach writes a node's record under a fresh lease; see membership.Registrar.
func (c *cluster) Attach(ctx context.Context, id string, ttl time.Duration, decide func(topology.ClusterID, *membership.Live) (membership.Live, error)) (membership.Presence, error) {
	if c.err != nil {
		return nil, translate("register", c.noCluster())
	}
	if err := topology.ValidateNodeID(id); err != nil {
		return nil, fmt.Errorf("etcdstore: register: %w: %w", membership.ErrInvalid, err)
	}
	for n := 1; ; n++ {
		p, err := c.attach(ctx, id, max(ttl, time.Second), decide)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, etcdkv.ErrConflict) || n == retries || !jitter(ctx, n) {
			return nil, translate("register", err)
		}
	}
}

// attach makes one attempt. A record under the lease of a process that is gone
// is taken over by a put with the new lease: made anew it would only be once the
// old lease has ended, and kept it would vanish with that lease.
func (c *cluster) attach(ctx context.Context, id string, ttl time.Duration, decide func(topology.ClusterID, *membership.Live) (membership.Live, error)) (*presence, error) {
	key := c.keys.Live(id)
	r, err := c.s.kv.Get(ctx, etcdkv.Range{Key: c.keys.Meta()}, etcdkv.Range{Key: key})
	if err != nil {
		return nil, err
	}
	meta, err := c.meta(r)
	if err != nil {
		return nil, err
	}
	var held *membership.Live
	if was, err := etcdkv.DecodeLive(meta.ID, id, r.First(1).Value); err == nil {
		l := fromLive(was)
		held = &l
	}
	live, err := decide(meta.ID, held)
	if err != nil {
		return nil, err
	}
	value, err := etcdkv.EncodeRecord(toLive(live))
	if err != nil {
		return nil, err
	}
	lease, seconds, err := c.s.kv.Grant(ctx, etcdkv.LeaseWithin(ttl))
	if err != nil {
		return nil, err
	}
	if given := time.Duration(seconds) * time.Second; given > ttl {
		c.s.log.Warn("etcd makes the lease longer than asked, 1.5 of its election timeouts at least; a node that dies is noticed later", "node", id, "asked", ttl, "given", given)
	}
	p := &presence{c: c, key: key, lease: lease, ttl: time.Duration(seconds) * time.Second, id: id, cluster: meta.ID, owner: live.Owner, done: make(chan struct{})}
	p.revision, err = c.s.kv.Commit(ctx, etcdkv.Txn{If: []etcdkv.Compare{r.First(0).As(c.keys.Meta()), r.First(1).As(key)},
		Puts: []etcdkv.Put{{Key: key, Value: value, Lease: lease}}, Confirm: key})
	if err != nil {
		p.revoke(ctx)
		return nil, err
	}
	p.keep(ctx)
	return p, nil
}

// meta decodes the first range of a reading.
func (c *cluster) meta(r etcdkv.Reading) (etcdkv.Meta, error) {
	if r.First(0).ModRevision == 0 {
		return etcdkv.Meta{}, c.noCluster()
	}
	return etcdkv.DecodeMeta(r.First(0).Value)
}

// presence is a record under a lease of its own.
type presence struct {
	c       *cluster
	key     string
	lease   clientv3.LeaseID
	ttl     time.Duration // of the lease
	id      string
	cluster topology.ClusterID
	owner   string

	done   chan struct{}
	lost   sync.Once
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // one Update at a time
	revision int64      // of the record as this process wrote it
}

// keep renews the lease and watches the key until either is lost or End.
func (p *presence) keep(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx)) // it outlives the call
	p.wg.Go(func() {
		err := p.c.s.kv.Renew(ctx, p.lease, p.ttl)
		p.lose(ctx, err)
	})
	p.wg.Go(func() {
		err := p.c.s.kv.Follow(ctx, []etcdkv.Range{{Key: p.key}}, nil, func(r etcdkv.Reading) error { return p.check(r.First(0)) })
		p.lose(ctx, err)
	})
}

// check says why the record is no longer this process's.
func (p *presence) check(item etcdkv.Item) error {
	if item.ModRevision == 0 {
		return errors.New("the record is gone")
	}
	l, err := etcdkv.DecodeLive(p.cluster, p.id, item.Value)
	switch {
	case err != nil:
		return err
	case l.Owner != p.owner:
		return fmt.Errorf("the record was taken over by %s at %q", l.Owner, l.Addr)
	}
	return nil
}

func (p *presence) lose(ctx context.Context, err error) {
	p.lost.Do(func() {
		if ctx.Err() == nil {
			p.c.s.log.Debug("presence lost", "cluster", p.c.name, "node", p.id, "error", err)
		}
		close(p.done)
		p.cancel()
	})
}

// Done is closed when the record is lost or given up.
func (p *presence) Done() <-chan struct{} { return p.done }

// Update replaces the record under the same lease.
func (p *presence) Update(ctx context.Context, l membership.Live) error {
	value, err := etcdkv.EncodeRecord(toLive(l))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	revision, err := p.c.s.kv.Commit(ctx, etcdkv.Txn{If: []etcdkv.Compare{{Key: p.key, Revision: p.revision}},
		Puts: []etcdkv.Put{{Key: p.key, Value: value, Lease: p.lease}}, Confirm: p.key})
	if errors.Is(err, etcdkv.ErrConflict) {
		p.lose(ctx, err)
	}
	if err != nil {
		return translate("update registration", err)
	}
	p.revision = revision
	return nil
}

// End revokes the lease, and the record goes with it.
func (p *presence) End(ctx context.Context) error {
	p.cancel()
	p.wg.Wait()
	return translate("leave", p.c.s.kv.Revoke(ctx, p.lease))
}

// revoke ends the lease in bounded time, though ctx may have ended.
func (p *presence) revoke(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_ = p.c.s.kv.Revoke(ctx, p.lease) // it ends by itself otherwise
}

func (c *cluster) roll() []etcdkv.Range {
	return []etcdkv.Range{{Key: c.keys.Meta()}, {Key: c.keys.Lives(), Prefix: true}, {Key: c.keys.Members(), Prefix: true}}
}

// Roll returns who is there; see membership.Roster.
func (c *cluster) Roll(ctx context.Context) (membership.Roll, error) {
	if c.err != nil {
		return membership.Roll{}, translate("roll", c.noCluster())
	}
	r, err := c.s.kv.Get(ctx, c.roll()...)
	if err != nil {
		return membership.Roll{}, translate("roll", err)
	}
	roll, err := c.decodeRoll(r)
	return roll, translate("roll", err)
}

// decodeRoll leaves out what is not whole: one garbage record harms no other
// node.
func (c *cluster) decodeRoll(r etcdkv.Reading) (roll membership.Roll, err error) {
	meta, err := c.meta(r)
	if err != nil {
		return roll, err
	}
	for _, item := range r.Items[1] {
		l, err := etcdkv.DecodeLive(meta.ID, strings.TrimPrefix(item.Key, c.keys.Lives()), item.Value)
		live := fromLive(l)
		if err == nil {
			err = live.Validate()
		}
		if err != nil {
			c.s.log.Warn("presence is left out", "cluster", c.name, "key", item.Key, "error", err)
			continue
		}
		roll.Live = append(roll.Live, live)
	}
	for _, item := range r.Items[2] {
		m, err := etcdkv.DecodeMember(strings.TrimPrefix(item.Key, c.keys.Members()), item.Value)
		if err != nil {
			c.s.log.Warn("record of a member is left out", "cluster", c.name, "key", item.Key, "error", err)
			continue
		}
		roll.Marks = append(roll.Marks, fromMember(m))
	}
	return roll, nil
}

// WatchRoll calls fn with the roll now and after every change.
func (c *cluster) WatchRoll(ctx context.Context, fn func(membership.Roll) error) error {
	if c.err != nil {
		return translate("watch roll", c.noCluster())
	}
	var last []int64
	return c.s.kv.Follow(ctx, c.roll(), c.s.tell("watch roll", c.name), func(r etcdkv.Reading) error {
		now := []int64{int64(len(r.Items[1]))}
		for _, items := range r.Items {
			for _, item := range items {
				now = append(now, item.ModRevision)
			}
		}
		if last != nil && slices.Equal(now, last) {
			return nil
		}
		last = now
		roll, err := c.decodeRoll(r)
		if errors.Is(err, etcdkv.ErrCorrupt) {
			c.s.log.Error("roll cannot be used, keeping the last", "cluster", c.name, "error", err)
			return nil
		}
		if err != nil {
			return translate("watch roll", err)
		}
		return fn(roll)
	})
}

// Mark writes admission's memory under the leadership.
func (c *cluster) Mark(ctx context.Context, l membership.Leadership, marks []membership.Mark) error {
	lead, ok := l.(*leadership)
	if !ok || lead.key != c.keys.Leader() || lead.ended() {
		return fmt.Errorf("etcdstore: mark: %w", membership.ErrNotLeader)
	}
	for batch := range slices.Chunk(marks, etcdkv.MaxOps/2) {
		txn := etcdkv.Txn{If: []etcdkv.Compare{lead.compare()}}
		for _, m := range batch {
			key := c.keys.Member(m.ID)
			if m.Remove {
				txn.Deletes = append(txn.Deletes, etcdkv.Range{Key: key})
				continue
			}
			value, err := etcdkv.EncodeRecord(toMember(m))
			if err != nil {
				return err
			}
			txn.Puts = append(txn.Puts, etcdkv.Put{Key: key, Value: value})
		}
		_, err := c.s.kv.Commit(ctx, txn)
		if errors.Is(err, etcdkv.ErrConflict) {
			return fmt.Errorf("etcdstore: mark: %w: %w", membership.ErrNotLeader, err)
		}
		if err != nil {
			return translate("mark", err)
		}
	}
	return nil
}

// SetOverlay writes what the leader says of the nodes' health, under its lease.
func (c *cluster) SetOverlay(ctx context.Context, l membership.Leadership, o membership.Overlay) error {
	lead, ok := l.(*leadership)
	if !ok || lead.key != c.keys.Leader() || lead.ended() {
		return fmt.Errorf("etcdstore: health: %w", membership.ErrNotLeader)
	}
	value, err := etcdkv.EncodeRecord(etcdkv.Overlay{Bad: o.Bad})
	if err != nil {
		return err
	}
	_, err = c.s.kv.Commit(ctx, etcdkv.Txn{If: []etcdkv.Compare{lead.compare()}, Puts: []etcdkv.Put{{Key: c.keys.Overlay(), Value: value, Lease: lead.lease}}})
	if errors.Is(err, etcdkv.ErrConflict) {
		return fmt.Errorf("etcdstore: health: %w: %w", membership.ErrNotLeader, err)
	}
	return translate("health", err)
}

func toLive(l membership.Live) etcdkv.Live {
	return etcdkv.Live{ID: l.ID, Cluster: l.Cluster, Addr: l.Addr, Zone: l.Zone, Weight: l.Weight, Owner: l.Owner, Identity: l.Identity,
		Incarnation: l.Incarnation, Drain: l.Drain, Health: string(l.Health), Reason: l.Reason}
}

func fromLive(l etcdkv.Live) membership.Live {
	return membership.Live{ID: l.ID, Cluster: l.Cluster, Addr: l.Addr, Zone: l.Zone, Weight: l.Weight, Owner: l.Owner, Identity: l.Identity,
		Incarnation: l.Incarnation, Drain: l.Drain, Health: membership.Health(l.Health), Reason: l.Reason}
}

func toMember(m membership.Mark) etcdkv.Member {
	return etcdkv.Member{ID: m.ID, Owner: m.Owner, Incarnation: m.Incarnation, Addr: m.Addr, Zone: m.Zone, Weight: m.Weight,
		State: m.State, Next: m.Next, Admitted: m.Admitted}
}

func fromMember(m etcdkv.Member) membership.Mark {
	return membership.Mark{ID: m.ID, Owner: m.Owner, Incarnation: m.Incarnation, Addr: m.Addr, Zone: m.Zone, Weight: m.Weight,
		State: m.State, Next: m.Next, Admitted: m.Admitted}
}
