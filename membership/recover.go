package membership

import (
	"context"
	"errors"
	"time"

	"github.com/shardd/shardd/topology"
)

// present shows the store what this process has seen of it, after behind said
// that the store does not continue that. The state becomes the one with the
// evidence in it, or the reason stands.
func (c *Controller) present(ctx context.Context, s *State, reason error) error {
	if c.c.Epochs == nil || !errors.Is(reason, ErrWentBack) {
		return &refusedError{reason}
	}
	shown := Shown{Ref: c.newest, By: "server " + c.c.ID + ", which led,", Trusted: true, At: c.c.Now().UnixMilli()}
	evidence, err := c.c.Epochs.Show(ctx, shown)
	if err != nil {
		return err
	}
	if !evidence { // the store came forward again, or somebody raised the epoch
		return ErrConflict
	}
	fresh, err := c.c.Store.Load(ctx)
	if err == nil {
		*s = fresh
	}
	return err
}

// heal answers a state with evidence that the store went back: with a bump if
// some evidence is trusted and the last one is long enough ago, else with a
// refusal that says so.
func (c *Controller) heal(ctx context.Context, l Leadership, s *State) error {
	reason := s.Err(s.Position().Head)
	now := c.c.Now()
	if c.c.Epochs == nil || !s.trusted() {
		return &refusedError{reason}
	}
	if s.bumpedLately(now) || !c.bumped.IsZero() && now.Sub(c.bumped).Abs() < BumpInterval {
		c.retry = BumpInterval / 12
		return &refusedError{reason}
	}
	if err := c.bump(ctx, l, s, now); err != nil {
		if errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge) {
			return &refusedError{err}
		}
		return err
	}
	return nil
}

func (c *Controller) bump(ctx context.Context, l Leadership, s *State, now time.Time) error {
	newest := s.Shown[0]
	b, err := s.Bump(c.recall(newest.Ref), topology.Cause{By: c.c.ID, Why: newest.By + " has " + newest.Ref.String()}, now)
	if err != nil {
		return err
	}
	if err := c.c.Epochs.Bump(ctx, l, b); err != nil {
		return err
	}
	c.bumped, c.prev, c.newest = now, nil, topology.Ref{}
	version := topology.Version{Epoch: b.Epoch}
	if b.Next != nil {
		c.newest, version = b.Next.Ref(), b.Next.Version()
	}
	c.log.Warn("epoch raised, the store had gone back", "version", version, "head", b.Expect, "shown", newest.Ref, "shown-by", newest.By, "ratio", b.Movement.Ratio)
	return nil
}

// recall returns the topology of ref if this process has it, else nil.
func (c *Controller) recall(ref topology.Ref) *topology.Topology {
	same := func(t *topology.Topology) bool { return t.Version() == ref.Version && t.Digest() == ref.Digest }
	if c.prev != nil && same(c.prev.Topology()) {
		return c.prev.Topology()
	}
	if c.c.Recall != nil {
		if t := c.c.Recall(); t != nil && same(t) {
			return t
		}
	}
	return nil
}

// frozen answers a frozen cluster: with a refusal if there is anything to
// publish.
func (c *Controller) frozen(s *State) error {
	if s.Head != nil && s.Applied == s.Generation {
		return nil
	}
	return &refusedError{s.Frozen.Err()}
}
