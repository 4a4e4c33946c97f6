package storetest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/shardd/shardd/membership"
)

// testGarbageDeclared: declared state that cannot be read leaves the head in
// place, is told, and is mended by a whole declaration.
func testGarbageDeclared(t *testing.T, s *suite) {
	if s.WriteDeclared == nil {
		t.Skip("this store cannot hold garbage")
	}
	store, _ := s.create(t, declared("c", 2))
	l := s.lead(t, "c")
	s.publish(t, store, l)
	for _, garbage := range [][]byte{{}, []byte("{"), []byte(`{"generation":0}`), []byte(`{"generation":5,"digest":"00000000000000000000000000000001"}`), nil} {
		s.WriteDeclared(t, "c", garbage)
		state := s.load(t, store)
		if state.Invalid == nil || state.Head == nil || len(state.Declared.Nodes) > 0 {
			t.Fatalf("with declared state %q: %+v", garbage, state)
		}
		_, err := store.Declare(s.ctx, membership.AddNode(node(8)))
		wantErr(t, "an edit on garbage", err, membership.ErrCorrupt)
		s.declare(t, store, membership.ReplaceAll(declared("c", 4)))
		if state := s.load(t, store); state.Invalid != nil || len(state.Declared.Nodes) != 4 || state.Generation <= state.Applied {
			t.Fatalf("after a whole declaration: %+v", state)
		}
	}
	s.publish(t, store, l)
}

// testGarbageHead: a head that cannot be read is never delivered; when it is
// mended, watching goes on.
func testGarbageHead(t *testing.T, s *suite) {
	if s.WriteHead == nil {
		t.Skip("this store cannot hold garbage")
	}
	store, _ := s.create(t, declared("c", 2))
	l := s.lead(t, "c")
	s.publish(t, store, l)
	good := s.ReadHead(t, "c")
	s.declare(t, store, membership.AddNode(node(2)))
	var calls atomic.Int32
	var applied atomic.Uint64
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() {
		done <- s.Other.Open("c").Watch(ctx, func(s membership.State) error {
			calls.Add(1)
			applied.Store(s.Applied)
			return nil
		})
	}()
	s.eventually(t, "the first state", func() bool { return calls.Load() == 1 })
	for _, garbage := range []string{"", "junk", `{"version":"1.1"}`, `{"version":"1.9","history":"00000000000000aa","digest":"00000000000000000000000000000001","generation":9}`} {
		s.WriteHead(t, "c", []byte(garbage))
		_, err := store.Load(s.ctx)
		wantErr(t, "Load with head "+garbage, err, membership.ErrCorrupt)
	}
	s.WriteHead(t, "c", good)
	p := s.publish(t, store, l)
	s.eventually(t, "the version after the garbage", func() bool { return applied.Load() == p.Generation })
	cancel()
	wantErr(t, "Watch", <-done, context.Canceled)
	if n := calls.Load(); n > 3 {
		t.Errorf("%d calls: garbage was delivered", n)
	}
}

// testDamagedContent: a table or topology that no longer has its digest is not
// delivered.
func testDamagedContent(t *testing.T, s *suite) {
	if s.DamageContents == nil {
		t.Skip("this store cannot hold garbage")
	}
	store, _ := s.create(t, declared("c", 2))
	l := s.lead(t, "c")
	p := s.publish(t, store, l)
	s.DamageContents(t, "c", p.Next.Digest())
	_, err := s.Other.Open("c").Load(s.ctx)
	wantErr(t, "Load", err, membership.ErrCorrupt)
}
