package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

func testPublish(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	l := s.lead(t, "c")
	first := s.publish(t, store, l)
	s.declare(t, store, membership.AddNode(node(3)))
	second := s.publish(t, store, l)
	got := s.load(t, s.Other.Open("c"))
	if !got.Head.Equal(second.Next) || !got.Head.Complete() || got.Applied != 2 || got.Head.Parent() != first.Next.Digest() {
		t.Errorf("head %v, applied %d", got.Head.Ref(), got.Applied)
	}
	other := s.Other.Open("c")
	v, err := other.Version(s.ctx, topology.Version{Epoch: 1, Seq: 1})
	if err != nil || !v.Equal(first.Next) {
		t.Errorf("Version(1.1): %v", err)
	}
	m, err := other.Movement(s.ctx, second.Next.Version())
	if diff := cmp.Diff(second.Movement, m); diff != "" || err != nil {
		t.Errorf("Movement: %v %s", err, diff)
	}
	_, err = other.Version(s.ctx, topology.Version{Epoch: 1, Seq: 3})
	wantErr(t, "a version to come", err, membership.ErrNoVersion)
	infos, err := other.Versions(s.ctx)
	if err != nil || len(infos) != 2 || infos[1].Digest != second.Next.Digest() || !infos[1].Moved || infos[1].Nodes != 4 || infos[1].Ratio != second.Movement.Ratio {
		t.Errorf("Versions: %v %+v", err, infos)
	}
}

// testPublishRefused: whatever does not continue the chain changes nothing.
func testPublishRefused(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	l := s.lead(t, "c")
	early := Next(t, s.load(t, store))
	s.publish(t, store, l)
	s.declare(t, store, membership.AddNode(node(3)))
	good := Next(t, s.load(t, store))
	change := func(f func(*topology.Draft)) membership.Publication {
		d := good.Next.Draft()
		f(&d)
		changed, err := topology.New(d)
		if err != nil {
			t.Fatal(err)
		}
		p := good
		p.Next = changed
		return p
	}
	future := good
	future.Generation++
	for name, c := range map[string]struct {
		p    membership.Publication
		want error
	}{
		"made from no head": {early, membership.ErrConflict},
		"gap":               {change(func(d *topology.Draft) { d.Version.Seq++ }), membership.ErrInvalid},
		"again":             {change(func(d *topology.Draft) { d.Version.Seq-- }), membership.ErrInvalid},
		"epoch":             {change(func(d *topology.Draft) { d.Version.Epoch++ }), membership.ErrInvalid},
		"history":           {change(func(d *topology.Draft) { d.History++ }), membership.ErrInvalid},
		"cluster id":        {change(func(d *topology.Draft) { d.ID[0]++ }), membership.ErrInvalid},
		"parent":            {change(func(d *topology.Draft) { d.Parent[0]++ }), membership.ErrInvalid},
		"no mapping":        {change(func(d *topology.Draft) { d.Mapping = topology.Digest{} }), membership.ErrInvalid},
		"generation":        {future, membership.ErrConflict},
	} {
		wantErr(t, name, store.Publish(s.ctx, l, c.p), c.want)
	}
	wantErr(t, "no leadership", store.Publish(s.ctx, nil, good), membership.ErrNotLeader)
	if got := s.load(t, store); got.Head.Version().Seq != 1 || got.Applied != 1 {
		t.Errorf("a refused publication changed the head: %v", got.Head.Ref())
	}
	if err := store.Publish(s.ctx, l, good); err != nil {
		t.Errorf("the good one: %v", err)
	}
	wantErr(t, "the same once more", store.Publish(s.ctx, l, good), membership.ErrConflict)
}

// testPublishNothing: edits that cancel out are answered without a version.
func testPublishNothing(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	l := s.lead(t, "c")
	wantErr(t, "nothing before the first", store.Publish(s.ctx, l, membership.Publication{Generation: 1}), membership.ErrInvalid)
	first := s.publish(t, store, l)
	s.declare(t, store, membership.AddNode(node(3)))
	s.declare(t, store, membership.RemoveNode("n00003"))
	if err := store.Publish(s.ctx, l, membership.Publication{Generation: 3, Expect: first.Next.Ref()}); err != nil {
		t.Fatal(err)
	}
	if got := s.load(t, store); got.Applied != 3 || got.Generation != 3 || !got.Head.Equal(first.Next) {
		t.Errorf("applied %d, generation %d, head %v", got.Applied, got.Generation, got.Head.Ref())
	}
	s.declare(t, store, membership.AddNode(node(4)))
	s.publish(t, store, l)
}

// testFencing: whoever has lost the leadership cannot publish, though it has
// not noticed yet.
func testFencing(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 3))
	old := s.lead(t, "c")
	s.publish(t, store, old)
	s.declare(t, store, membership.AddNode(node(3)))
	late := Next(t, s.load(t, store))
	s.Depose(t, "c")
	current, err := s.OtherElector.Campaign(s.ctx, "c", "second")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = current.Resign(s.ctx) }()
	wantErr(t, "the old leader", store.Publish(s.ctx, old, late), membership.ErrNotLeader)
	if got := s.load(t, store); got.Head.Version().Seq != 1 {
		t.Errorf("the old leader published %s", got.Head.Version())
	}
	if err := s.Other.Open("c").Publish(s.ctx, current, late); err != nil {
		t.Errorf("the new leader: %v", err)
	}
	_ = old.Resign(s.ctx) // of an old leader ends nothing
	s.declare(t, store, membership.AddNode(node(4)))
	s.publish(t, s.Other.Open("c"), current)
	other := declared("d", 1)
	s.create(t, other)
	wantErr(t, "the leader of another cluster", s.Directory.Open("d").Publish(s.ctx, current, Next(t, s.load(t, s.Directory.Open("d")))), membership.ErrNotLeader)
}

func testResign(t *testing.T, s *suite) {
	s.create(t, declared("c", 1))
	first := s.lead(t, "c")
	second := make(chan membership.Leadership, 1)
	go func() {
		if l, err := s.OtherElector.Campaign(s.ctx, "c", "second"); err == nil {
			second <- l
		}
		close(second)
	}()
	moment := time.NewTimer(20 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-second:
		t.Fatal("two leaders")
	case <-moment.C:
	}
	if err := first.Resign(s.ctx); err != nil {
		t.Fatal(err)
	}
	l, ok := <-second
	if !ok {
		t.Fatal("nobody took over")
	}
	<-first.Done()
	select {
	case <-l.Done():
		t.Error("the second leadership ended too")
	default:
	}
	if err := l.Resign(s.ctx); err != nil {
		t.Error(err)
	}
	<-l.Done()
}

func testCampaignEnds(t *testing.T, s *suite) {
	s.create(t, declared("c", 1))
	s.lead(t, "c")
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := s.OtherElector.Campaign(ctx, "c", "second")
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Campaign: %v", err)
	}
}

// testKept: of many versions the last KeptVersions that changed ownership stay,
// whatever came between.
func testKept(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 2))
	l := s.lead(t, "c")
	var all []membership.Publication
	edit := func(e membership.Edit) {
		s.declare(t, store, e)
		all = append(all, s.publish(t, store, l))
	}
	all = append(all, s.publish(t, store, l))
	for i := range membership.KeptVersions + 20 {
		edit(membership.SetWeight("n00000", uint32(i%2+2)))
	}
	for i := range membership.KeptVersions + 9 {
		edit(membership.ChangeNode("n00000", func(n *topology.Node) error { n.Addr = node(i + 500).Addr; return nil }))
	}
	moved, firstKept := 0, 0
	for i := len(all) - 1; i >= 0 && moved < membership.KeptVersions; i-- {
		if i == 0 || all[i].Next.Mapping() != all[i-1].Next.Mapping() {
			moved, firstKept = moved+1, i
		}
	}
	infos, err := store.Versions(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if moved != membership.KeptVersions || infos[0].Version.Compare(all[firstKept].Next.Version()) > 0 {
		t.Errorf("%d versions changed ownership; kept from %s on, want from %s on", moved, infos[0].Version, all[firstKept].Next.Version())
	}
	if n := len(infos); n > 2*membership.KeptVersions+8 {
		t.Errorf("%d versions are kept", n)
	}
	for _, info := range infos {
		got, err := s.Other.Open("c").Version(s.ctx, info.Version)
		if err != nil || got.Digest() != all[info.Version.Seq-1].Next.Digest() {
			t.Fatalf("kept version %s: %v", info.Version, err)
		}
		if _, err := store.Movement(s.ctx, info.Version); err != nil {
			t.Fatalf("movement of kept version %s: %v", info.Version, err)
		}
	}
	_, err = store.Version(s.ctx, topology.Version{Epoch: 1, Seq: 2})
	wantErr(t, "an old version", err, membership.ErrNoVersion)
	if ok, err := store.Descends(s.ctx, all[1].Next.Ref()); !ok || err != nil {
		t.Errorf("the chain reaches further than the versions: %v %v", ok, err)
	}
}

func testDescends(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 2))
	l := s.lead(t, "c")
	if ok, err := store.Descends(s.ctx, topology.Ref{}); ok || err != nil {
		t.Errorf("before the first version: %v %v", ok, err)
	}
	first := s.publish(t, store, l).Next.Ref()
	s.declare(t, store, membership.AddNode(node(3)))
	second := s.publish(t, store, l).Next.Ref()
	forged := func(change func(*topology.Ref)) topology.Ref {
		ref := first
		change(&ref)
		return ref
	}
	for _, c := range []struct {
		name string
		ref  topology.Ref
		want bool
	}{
		{"parent", first, true},
		{"head", second, true},
		{"nothing", topology.Ref{}, false},
		{"another digest", forged(func(r *topology.Ref) { r.Digest[3]++ }), false},
		{"another history", forged(func(r *topology.Ref) { r.History++ }), false},
		{"another cluster", forged(func(r *topology.Ref) { r.ClusterID[0]++ }), false},
		{"another epoch", forged(func(r *topology.Ref) { r.Version.Epoch++ }), false},
		{"a version to come", forged(func(r *topology.Ref) { r.Version.Seq = 9 }), false},
		{"digest of the second at the first", forged(func(r *topology.Ref) { r.Digest = second.Digest }), false},
	} {
		if got, err := s.Other.Open("c").Descends(s.ctx, c.ref); got != c.want || err != nil {
			t.Errorf("%s: %v %v, want %v", c.name, got, err, c.want)
		}
	}
}
