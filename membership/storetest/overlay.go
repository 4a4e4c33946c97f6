package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/shardd/shardd/membership"
)

// testOverlay: what the leader says of the nodes' health is there for all, is no
// part of what is declared or published, and goes with the leadership.
func testOverlay(t *testing.T, s *suite) {
	store, first := s.create(t, declared("c", 2))
	if first.Overlay != nil {
		t.Errorf("a new cluster has health %v", first.Overlay)
	}
	l := s.lead(t, "c")
	other := s.Other.Open("c")
	seen := make(chan *membership.Overlay, 100)
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- other.Watch(ctx, func(state membership.State) error { seen <- state.Overlay; return nil })
	}()
	defer func() {
		cancel()
		wantErr(t, "Watch", <-ended, context.Canceled)
	}()
	until := func(what string, ok func(*membership.Overlay) bool) {
		t.Helper()
		for {
			select {
			case o := <-seen:
				if ok(o) {
					return
				}
			case <-s.ctx.Done():
				t.Fatalf("the watch does not tell: %s", what)
			}
		}
	}
	say := func(bad ...string) {
		t.Helper()
		if err := roster(t, s.Directory).SetOverlay(s.ctx, l, membership.Overlay{Bad: bad}); err != nil {
			t.Fatalf("SetOverlay: %v", err)
		}
		until("health", func(o *membership.Overlay) bool { return o != nil && slices.Equal(o.Bad, bad) })
		if o := s.load(t, other).Overlay; o == nil || !slices.Equal(o.Bad, bad) {
			t.Errorf("Load: health %v, want %v", o, bad)
		}
	}
	say("n00000", "n00001")
	s.publish(t, store, l)
	s.declare(t, store, membership.SetWeight("n00001", 2))
	say()
	say("n00001")
	if got := s.load(t, other); got.Generation != 2 || got.Position().Head.Version.Seq != 1 {
		t.Errorf("health changed generation %d, head %s", got.Generation, got.Position().Head)
	}
	s.Depose(t, "c")
	wantErr(t, "SetOverlay after the end", roster(t, s.Directory).SetOverlay(s.ctx, l, membership.Overlay{}), membership.ErrNotLeader)
	_ = l.Resign(s.ctx) // ends the lease, if it has not ended
	until("nobody says anything", func(o *membership.Overlay) bool { return o == nil })
}
