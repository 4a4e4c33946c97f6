package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// refusedError marks a state that is not published, for a reason that only
// another state mends. It is shown in Status, not tried again.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// step answers one state: with a version, with nothing because nothing changed,
// or with a reason in Status. An error is worth another try on fresh state.
func (c *Controller) step(ctx context.Context, l Leadership, s State) error {
	c.retry = 0
	err := c.see(ctx, &s)
	if err == nil {
		err = c.answer(ctx, l, &s)
	}
	var refused *refusedError
	if errors.As(err, &refused) {
		c.log.Error("declared state is not published, the head stays", "generation", s.Generation, "error", refused.err)
		c.update(func(st *Status) { st.Err = refused.err; st.Generation = s.Generation })
		return nil
	}
	if err != nil {
		return err
	}
	c.update(func(st *Status) {
		st.Version, st.Generation, st.Applied, st.Err = c.newest.Version, s.Generation, s.Applied, nil
	})
	return nil
}

// see takes note of the head. A state that is older than what this process has
// seen may have been read before the last publication: then a fresh reading
// takes its place. If that is older too, the store itself went back (restored
// from a backup, or another store), and publishing would fork the chain.
func (c *Controller) see(ctx context.Context, s *State) error {
	if behind(c.newest, s.Position()) != nil {
		fresh, err := c.c.Store.Load(ctx)
		if err != nil {
			return err
		}
		*s = fresh
	}
	if err := behind(c.newest, s.Position()); err != nil {
		return c.present(ctx, s, err)
	}
	c.newest = s.Position().Head
	return nil
}

// behind says in what way a position does not continue what was seen, or
// returns nil.
func behind(seen topology.Ref, p Position) error {
	head := p.Head
	switch {
	case seen.IsZero() || head == seen:
		return nil
	case p.ID != seen.ClusterID:
		return fmt.Errorf("%w: the store holds cluster id %s, this process published for %s: another store, or the cluster was made anew", ErrConflict, p.ID, seen.ClusterID)
	case head.Version.Epoch > seen.Version.Epoch:
		return nil
	case head.Version.Compare(seen.Version) <= 0 || head.History != seen.History:
		return fmt.Errorf("%w: the store went back: its head is %s, this process has seen %s; nothing is published until the epoch is raised", ErrWentBack, head, seen)
	}
	return nil
}

func (c *Controller) answer(ctx context.Context, l Leadership, s *State) error {
	if len(s.Shown) > 0 {
		return c.heal(ctx, l, s)
	}
	if s.Frozen != nil {
		return c.frozen(s)
	}
	if s.Invalid != nil {
		return &refusedError{s.Invalid}
	}
	if err := s.Declared.Validate(); err != nil {
		return &refusedError{fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	if s.Head != nil && s.Head.Transition() != nil {
		return c.goOn(ctx, l, s)
	}
	pub := Publication{Generation: s.Generation, Expect: s.Position().Head}
	began := time.Now()
	old, err := c.restored(ctx, s)
	if err != nil {
		return err
	}
	if s.Head != nil && answers(s.Head, s.Declared) && (old == nil || old.Mapping() == s.Head.Mapping()) {
		if s.Applied == s.Generation {
			return nil
		}
		c.log.Info("edits change nothing", "generation", s.Generation)
		return c.publish(ctx, l, s, pub)
	}
	next, err := c.build(s, old)
	if err != nil {
		return &refusedError{err}
	}
	if err := c.publishNext(ctx, l, s, pub, next, began); err != nil {
		return err
	}
	if next.Moving() {
		s.Head = next.Topology()
		return c.goOn(ctx, l, s)
	}
	return nil
}

// publishNext publishes next, with the report of what moves.
func (c *Controller) publishNext(ctx context.Context, l Leadership, s *State, pub Publication, next *placement.Table, began time.Time) (err error) {
	pub.Next = next.Topology()
	if pub.Movement, err = placement.Movement(c.prev, next); err != nil {
		return &refusedError{fmt.Errorf("membership: movement to %s: %w", pub.Next.Version(), err)}
	}
	if pub.Next.Cause().Kind == CauseRestored {
		pub.Movement.Cause = CauseRestored
	}
	built := time.Since(began)
	if err := c.publish(ctx, l, s, pub); err != nil {
		return err
	}
	c.prev, c.newest = next, pub.Next.Ref()
	m, cause := pub.Movement, pub.Next.Cause()
	c.log.Info("published", "version", pub.Next.Version(), "nodes", pub.Next.Len(), "cause", cause.Kind, "by", cause.By, "why", cause.Why,
		"ratio", m.Ratio, "minimum", m.Minimum, "excess", m.Excess, "method", m.Method, "generation", s.Generation, "build", built, "took", time.Since(began))
	return nil
}

func (c *Controller) publish(ctx context.Context, l Leadership, s *State, pub Publication) error {
	if err := c.c.Store.Publish(ctx, l, pub); err != nil {
		if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalid) {
			return &refusedError{err}
		}
		return err
	}
	s.Applied = pub.Generation
	return nil
}

// answers reports whether t is what d asks for. Both have their spec in normal
// form and their nodes sorted.
func answers(t *topology.Topology, d topology.Declared) bool {
	return t.Spec() == d.Spec && slices.Equal(t.Nodes(), placement.PlaceNodes(t, d.Spec, d.Nodes))
}

// build derives the next version from the head, with the tables of old if there is
// one.
func (c *Controller) build(s *State, old *topology.Topology) (*placement.Table, error) {
	d := c.draft(s, s.Declared.Nodes)
	if err := c.load(s); err != nil {
		return nil, err
	}
	if over := rampOf(s.pending()); over != 0 {
		next, err := placement.Begin(c.prev, d, newTransition(over))
		if err == nil {
			return next, nil
		}
		c.log.Warn("change cannot be made in steps and is made at once", "error", err, "ramp", over)
	}
	if old != nil && c.prev != nil {
		if next, err := buildFrom(c.prev, d, old); err == nil {
			return next, nil
		} else {
			c.log.Warn("tables of an earlier version do not fit", "version", old.Version(), "error", err)
		}
	}
	next, err := placement.UpdateWith(c.prev, d, placement.UpdateOptions{Replace: replacements(c.prev, d, s.pending()), Tenure: true})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return next, nil
}

// draft is the next version of s with nodes.
func (c *Controller) draft(s *State, nodes []topology.Node) topology.Draft {
	d := topology.Draft{Cluster: s.Declared.Cluster, ID: s.ID, History: s.History, Spec: s.Declared.Spec, Nodes: nodes,
		Version: topology.Version{Epoch: s.Epoch, Seq: 1}, Cause: cause(s.pending())}
	if s.Head != nil && s.Head.Version().Epoch == s.Epoch {
		d.Version.Seq = s.Head.Version().Seq + 1
	}
	d.Cause.At = c.c.Now().UnixMilli()
	return d
}

// load makes the head's table the one to go on from.
func (c *Controller) load(s *State) error {
	switch {
	case s.Head == nil:
		c.prev = nil
	case c.prev == nil || c.prev.Topology().Ref() != s.Head.Ref():
		prev, err := placement.New(s.Head)
		if err != nil {
			return fmt.Errorf("membership: head %s: %w", s.Head.Version(), err)
		}
		c.prev = prev
	}
	return nil
}

// cause joins who made the edits that a version answers, and why. The kind is
// found by placement.
func cause(notes []Note) topology.Cause {
	var by, why []string
	for _, n := range notes {
		by, why = appendNew(by, n.By), appendNew(why, n.why())
	}
	return topology.Cause{By: join(by), Why: join(why)}
}

// why is what the cause says of the edit: of a rollback where to, too.
func (n Note) why() string {
	if n.Restore.IsZero() {
		return n.Why
	}
	return strings.TrimSuffix("rollback to "+n.Restore.String()+": "+n.Why, ": ")
}

func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// join keeps to the limit of a cause, whole entries only.
func join(list []string) string {
	const most, rest = 1024, ", ..."
	s := strings.Join(list, ", ")
	for len(s) > most {
		list = list[:len(list)-1]
		if s = strings.Join(list, ", ") + rest; len(list) == 0 {
			return ""
		}
	}
	return s
}

// replacements follows the edits' hints from the nodes of the version before to
// those of the next: a became b, then b became c, is a became c. Hints that no
// longer fit are left out: they only make a cheap change cheaper.
func replacements(prev *placement.Table, d topology.Draft, notes []Note) map[string]string {
	if prev == nil {
		return nil
	}
	to := map[string]string{}
	for _, n := range notes {
		for a, b := range n.Replace {
			first := a
			for old, heir := range to {
				if heir == a {
					first = old
				}
			}
			to[first] = b
		}
	}
	owns := func(nodes []topology.Node, id string) bool {
		i := indexNode(nodes, id)
		return i >= 0 && nodes[i].OwnerWeight() > 0
	}
	before := prev.Topology().Nodes()
	for a, b := range to {
		if !owns(before, a) || owns(d.Nodes, a) || owns(before, b) || !owns(d.Nodes, b) {
			delete(to, a)
		}
	}
	return to
}
