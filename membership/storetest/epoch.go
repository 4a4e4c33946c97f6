package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// testShow: evidence is what the head neither is nor descends from; it stops
// publication, also of a version that was made before it came.
func testShow(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	l := s.lead(t, "c")
	var refs []topology.Ref
	for i := range 3 {
		refs = append(refs, s.publish(t, store, l).Next.Ref())
		s.declare(t, store, membership.AddNode(node(3+i)))
	}
	pending := Next(t, s.load(t, store))
	state := s.load(t, store)
	change := func(f func(*topology.Ref)) topology.Ref { r := refs[1]; f(&r); return r }
	for name, c := range map[string]struct {
		ref  topology.Ref
		want bool
	}{
		"head":             {refs[2], false},
		"ancestor":         {refs[0], false},
		"without history":  {change(func(r *topology.Ref) { r.History = 0 }), false},
		"another cluster":  {change(func(r *topology.Ref) { r.ClusterID[0]++; r.Version.Seq = 99 }), false},
		"an earlier epoch": {change(func(r *topology.Ref) { r.Version.Epoch = 0 }), false},
		"nothing":          {topology.Ref{ClusterID: state.ID}, false},
	} {
		got, err := s.Other.Open("c").Show(s.ctx, membership.Shown{Ref: c.ref, By: "x"})
		if got != c.want || err != nil {
			t.Errorf("%s: evidence %v, %v", name, got, err)
		}
	}
	if got := s.load(t, store); len(got.Shown) > 0 {
		t.Fatalf("no evidence, but %v is noted", got.Shown)
	}
	_, err := store.Show(s.ctx, membership.Shown{Ref: change(func(r *topology.Ref) { r.Version.Epoch = 1 << 60 })})
	wantErr(t, "an epoch out of reach", err, membership.ErrInvalid)

	forked := change(func(r *topology.Ref) { r.Digest[0]++; r.History = 0 })
	newer := change(func(r *topology.Ref) { r.Version.Seq = 9 })
	for _, shown := range []membership.Shown{{Ref: forked, By: "client"}, {Ref: newer, By: "file", Trusted: true}, {Ref: newer, By: "client"}} {
		if got, err := s.Other.Open("c").Show(s.ctx, shown); !got || err != nil {
			t.Errorf("%s: evidence %v, %v", shown.Ref, got, err)
		}
	}
	want := []membership.Shown{{Ref: newer, By: "file", Trusted: true}, {Ref: forked, By: "client"}}
	if diff := cmp.Diff(want, s.load(t, s.Other.Open("c")).Shown); diff != "" {
		t.Error(diff)
	}
	wantErr(t, "publish", store.Publish(s.ctx, l, pending), membership.ErrWentBack)
	if got := s.load(t, store); got.Head.Ref() != refs[2] {
		t.Errorf("head %s", got.Head.Ref())
	}
	s.declare(t, store, membership.SetWeight("n00000", 7)) // edits are taken all the same
}

// testShownAreBounded: any number of versions may be presented.
func testShownAreBounded(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	ref := s.publish(t, store, s.lead(t, "c")).Next.Ref()
	for i := range 3 * membership.MaxShown {
		ref.Version.Seq = uint64(2 + i)
		if _, err := store.Show(s.ctx, membership.Shown{Ref: ref, By: "x", Trusted: i == 0}); err != nil {
			t.Fatal(err)
		}
	}
	got := s.load(t, store).Shown
	if len(got) != membership.MaxShown || got[0].Ref != ref || !got[len(got)-1].Trusted {
		t.Errorf("%d are noted: %v", len(got), got)
	}
}

// testBump: one transaction begins the epoch, with the head's contents.
func testBump(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	l := s.lead(t, "c")
	first := s.publish(t, store, l)
	s.declare(t, store, membership.AddNode(node(3)))
	before := s.load(t, store)
	late := Next(t, before)
	shown := first.Next.Ref()
	shown.Version = topology.Version{Epoch: 4, Seq: 17}
	if _, err := store.Show(s.ctx, membership.Shown{Ref: shown, By: "x"}); err != nil {
		t.Fatal(err)
	}
	state := s.load(t, store)
	bump, err := state.Bump(nil, topology.Cause{By: "alice"}, time.UnixMilli(5000), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Other.Open("c").Bump(s.ctx, nil, bump); err != nil { // on an operator's word, beside the leader
		t.Fatal(err)
	}
	got := s.load(t, s.Other.Open("c"))
	if got.Epoch != 5 || got.History == state.History || got.History != bump.History || len(got.Shown) > 0 || got.BumpedAt != 5000 || got.ID != state.ID {
		t.Errorf("after the bump: %+v", got.Position())
	}
	h := got.Head
	if h.Version() != (topology.Version{Epoch: 5, Seq: 1}) || h.Parent() != first.Next.Digest() || h.Mapping() != first.Next.Mapping() || h.Cause().Kind != membership.CauseWentBack || h.Cause().By != "alice" || h.Len() != 3 {
		t.Errorf("head %s, cause %+v, %d nodes", h.Ref(), h.Cause(), h.Len())
	}
	if got.Applied != before.Applied || got.Generation != before.Generation || len(got.Edits) == 0 {
		t.Errorf("applied %d of %d: the bump answers no edit", got.Applied, got.Generation)
	}
	if m, err := store.Movement(s.ctx, h.Version()); err != nil || m.Ratio != 0 || m.Cause != membership.CauseWentBack {
		t.Errorf("movement %+v, %v", m, err)
	}
	wantErr(t, "what was made before", store.Publish(s.ctx, l, late), membership.ErrConflict)
	wantErr(t, "the same bump again", store.Bump(s.ctx, nil, bump), membership.ErrConflict)
	if ok, err := store.Descends(s.ctx, first.Next.Ref()); ok || err != nil {
		t.Errorf("a version of the epoch before is proved by its digest: %v, %v", ok, err)
	}
	if next := s.publish(t, store, l).Next; next.Version() != (topology.Version{Epoch: 5, Seq: 2}) || next.Parent() != h.Digest() {
		t.Errorf("next is %s", next.Ref())
	}
	if kept, err := store.Version(s.ctx, first.Next.Version()); err != nil || !kept.Equal(first.Next) {
		t.Errorf("the version before the bump: %v", err)
	}
}

// testBumpRefused: what is no bump changes nothing.
func testBumpRefused(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	l := s.lead(t, "c")
	s.publish(t, store, l)
	state := s.load(t, store)
	good, err := state.Bump(nil, topology.Cause{}, time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*membership.Bump)
		want   error
	}{
		"epoch not raised":    {func(b *membership.Bump) { b.Epoch = 1 }, membership.ErrConflict},
		"epoch unlike Next":   {func(b *membership.Bump) { b.Epoch = 9 }, membership.ErrInvalid},
		"the same history":    {func(b *membership.Bump) { b.History = state.History }, membership.ErrInvalid},
		"history unlike Next": {func(b *membership.Bump) { b.History++ }, membership.ErrInvalid},
		"another head":        {func(b *membership.Bump) { b.Expect.Digest[0]++ }, membership.ErrConflict},
		"no contents":         {func(b *membership.Bump) { b.Next = nil }, membership.ErrInvalid},
	} {
		b := good
		c.change(&b)
		wantErr(t, name, store.Bump(s.ctx, l, b), c.want)
	}
	s.Depose(t, "c")
	wantErr(t, "deposed", store.Bump(s.ctx, l, good), membership.ErrNotLeader)
	if got := s.load(t, store); got.Epoch != 1 || got.Head.Version().Seq != 1 || got.History != state.History {
		t.Errorf("a refused bump changed the store: %s", got.Head.Ref())
	}
	wantErr(t, "no cluster", s.Directory.Open("d").Bump(s.ctx, nil, good), membership.ErrNoCluster)
	_, err = s.Directory.Open("d").Show(s.ctx, membership.Shown{Ref: state.Head.Ref()})
	wantErr(t, "no cluster", err, membership.ErrNoCluster)
}

// testBumpEmpty: a store that went back to before its first version.
func testBumpEmpty(t *testing.T, s *suite) {
	store, state := s.create(t, declared("c", 3))
	held := topology.Ref{ClusterID: state.ID, Version: topology.Version{Epoch: 1, Seq: 1}, Digest: topology.Digest{1}}
	if ok, err := store.Show(s.ctx, membership.Shown{Ref: held}); !ok || err != nil {
		t.Fatalf("evidence %v, %v", ok, err)
	}
	bump, err := s.load(t, store).Bump(nil, topology.Cause{}, time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	l := s.lead(t, "c")
	if err := store.Bump(s.ctx, l, bump); err != nil {
		t.Fatal(err)
	}
	if got := s.publish(t, store, l).Next; got.Version() != (topology.Version{Epoch: 2, Seq: 1}) || got.Ref().History != bump.History {
		t.Errorf("the first version is %s", got.Ref())
	}
	if ok, err := store.Show(s.ctx, membership.Shown{Ref: held}); ok || err != nil {
		t.Errorf("evidence once more: %v, %v", ok, err)
	}
}

// testFreeze: nothing is published while frozen, whenever it was made.
func testFreeze(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	l := s.lead(t, "c")
	s.publish(t, store, l)
	s.declare(t, store, membership.AddNode(node(3)))
	made := Next(t, s.load(t, store))
	for _, why := range []string{strings.Repeat("x", membership.MaxNoteLen+1), "\x1b[31m"} {
		_, err := store.Freeze(s.ctx, &membership.Freeze{Why: why})
		wantErr(t, "freeze for a reason that cannot be kept", err, membership.ErrInvalid)
	}
	for _, by := range []string{"alice", "bob"} {
		got, err := s.Other.Open("c").Freeze(s.ctx, &membership.Freeze{By: by, Why: "fair"})
		if err != nil || got.Frozen == nil || got.Frozen.By != "alice" {
			t.Fatalf("frozen by %+v, %v", got.Frozen, err)
		}
	}
	wantErr(t, "publish", store.Publish(s.ctx, l, made), membership.ErrFrozen)
	edit := membership.SetWeight("n00000", 3)
	edit.HeedFreeze = true
	_, err := store.Declare(s.ctx, edit)
	wantErr(t, "an operator's edit", err, membership.ErrFrozen)
	s.declare(t, store, membership.AddNode(node(4))) // a node that comes by itself
	if got := s.load(t, store); got.Head.Len() != 3 || got.Generation != 3 {
		t.Errorf("%d nodes, generation %d", got.Head.Len(), got.Generation)
	}
	for range 2 {
		if got, err := store.Freeze(s.ctx, nil); err != nil || got.Frozen != nil {
			t.Fatalf("unfreeze: %+v, %v", got.Frozen, err)
		}
	}
	if got := s.publish(t, store, l).Next; got.Len() != 5 {
		t.Errorf("%d nodes after it", got.Len())
	}
}

// testDelete: a cluster goes whole, and only the one that was meant.
func testDelete(t *testing.T, s *suite) {
	store, state := s.create(t, declared("c", 3))
	other, _ := s.create(t, declared("c2", 3))
	l := s.lead(t, "c")
	s.publish(t, store, l)
	wantErr(t, "another id", s.Directory.Delete(s.ctx, "c", topology.ClusterID{1}), membership.ErrConflict)
	watched := make(chan error, 1)
	go func() {
		watched <- s.Other.Open("c").Watch(s.ctx, func(membership.State) error { return nil })
	}()
	if err := s.Other.Delete(s.ctx, "c", state.ID); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "watch", <-watched, membership.ErrNoCluster)
	wantErr(t, "again", s.Directory.Delete(s.ctx, "c", state.ID), membership.ErrNoCluster)
	_, err := store.Load(s.ctx)
	wantErr(t, "load", err, membership.ErrNoCluster)
	names, err := s.Directory.List(s.ctx)
	if diff := cmp.Diff([]string{"c2"}, names); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	s.load(t, other)
	_, again := s.create(t, declared("c", 1))
	if again.ID == state.ID || again.Head != nil {
		t.Errorf("made anew it has id %s and head %v", again.ID, again.Head)
	}
	if err := s.Other.Delete(s.ctx, "c", again.ID); err != nil {
		t.Fatal(err)
	}
	d, ok := store.(membership.Deletions)
	if !ok {
		t.Fatalf("%T remembers no deletions", store)
	}
	ids, err := d.Deleted(s.ctx)
	if diff := cmp.Diff([]topology.ClusterID{again.ID, state.ID}, ids); diff != "" || err != nil {
		t.Errorf("deleted: %v %s", err, diff)
	}
}

// testRestore: a leader under which the store is restored publishes nothing that
// forks, and after a bump it goes on.
func testRestore(t *testing.T, s *suite) {
	if s.Backup == nil {
		t.Skip("no backup")
	}
	store, _ := s.create(t, declared("c", 3))
	l := s.lead(t, "c")
	s.publish(t, store, l)
	restore := s.Backup(t, "c")
	s.declare(t, store, membership.AddNode(node(3)))
	lost := s.publish(t, store, l)
	s.declare(t, store, membership.AddNode(node(4)))
	late := Next(t, s.load(t, store))
	restore(t)
	wantErr(t, "what was made of the lost version", store.Publish(s.ctx, l, late), membership.ErrConflict)
	if ok, err := store.Show(s.ctx, membership.Shown{Ref: lost.Next.Ref(), By: "file", Trusted: true}); !ok || err != nil {
		t.Fatalf("evidence %v, %v", ok, err)
	}
	bump, err := s.load(t, store).Bump(lost.Next, topology.Cause{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if bump.Movement.Ratio == 0 {
		t.Error("the movement against the version shown is 0")
	}
	if err := store.Bump(s.ctx, l, bump); err != nil {
		t.Fatal(err)
	}
	s.declare(t, store, membership.AddNode(node(5)))
	s.publish(t, store, l)
	s.checkEpoch(t, store, 2)
}

func (s *suite) checkEpoch(t *testing.T, store membership.ClusterStore, epoch uint64) {
	t.Helper()
	infos, err := store.Versions(s.ctx)
	if err != nil || len(infos) == 0 || infos[len(infos)-1].Version.Epoch != epoch {
		t.Errorf("versions %v, %v", infos, err)
	}
	if errors.Is(err, membership.ErrCorrupt) {
		t.Error(err)
	}
}
