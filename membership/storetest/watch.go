package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardd/shardd/membership"
)

func testWatch(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 2))
	l := s.lead(t, "c")
	states := make(chan membership.State, 100)
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() {
		done <- s.Other.Open("c").Watch(ctx, func(s membership.State) error { states <- s; return nil })
	}()
	until := func(what string, ok func(membership.State) bool) {
		for state := range states {
			if ok(state) {
				return
			}
		}
		t.Fatal(what)
	}
	until("the first", func(s membership.State) bool { return s.Head == nil && s.Generation == 1 })
	s.publish(t, store, l)
	until("a version", func(s membership.State) bool { return s.Head != nil && s.Applied == 1 && s.Head.Complete() })
	s.declare(t, store, membership.AddNode(node(7)))
	until("an edit", func(s membership.State) bool {
		return s.Generation == 2 && len(s.Declared.Nodes) == 3 && s.Applied == 1
	})
	s.publish(t, store, l)
	until("its answer", func(s membership.State) bool { return s.Head.Version().Seq == 2 && s.Applied == 2 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returned %v", err)
	}
	enough := errors.New("enough")
	wantErr(t, "an error of fn", store.Watch(s.ctx, func(membership.State) error { return enough }), enough)
}

// testWatchLatestWins: while fn works, changes pile up; the last one comes.
func testWatchLatestWins(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 2))
	calls, release := 0, make(chan struct{})
	entered := make(chan struct{}, 1)
	last := errors.New("last")
	done := make(chan error, 1)
	go func() {
		previous := uint64(0)
		done <- s.Other.Open("c").Watch(s.ctx, func(s membership.State) error {
			if s.Generation <= previous {
				return errors.New("a state came twice, or went back")
			}
			previous = s.Generation
			if calls++; calls == 1 {
				entered <- struct{}{}
				<-release
			}
			if s.Generation == 51 {
				return last
			}
			return nil
		})
	}()
	<-entered
	for i := range 50 {
		s.declare(t, store, membership.SetWeight("n00000", uint32(i+2)))
	}
	close(release)
	wantErr(t, "Watch", <-done, last)
	if calls > 40 {
		t.Errorf("%d calls for 50 changes behind a slow one: nothing was skipped", calls)
	}
}

func testManyWatchers(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 2))
	l := s.lead(t, "c")
	const n = 64
	var started, ended sync.WaitGroup
	started.Add(n)
	last := errors.New("last")
	var bad atomic.Int32
	for range n {
		watched := s.Other.Open("c")
		ended.Go(func() {
			var once sync.Once
			err := watched.Watch(s.ctx, func(s membership.State) error {
				once.Do(started.Done)
				if s.Head != nil && s.Head.Version().Seq == 10 {
					return last
				}
				return nil
			})
			if !errors.Is(err, last) {
				bad.Add(1)
			}
		})
	}
	started.Wait()
	for i := range 10 {
		if i > 0 {
			s.declare(t, store, membership.AddNode(node(i+10)))
		}
		s.publish(t, store, l)
	}
	ended.Wait()
	if bad.Load() > 0 {
		t.Errorf("%d of %d watchers did not see the last version", bad.Load(), n)
	}
}

// testCompaction: forgotten history costs a reading, not a change.
func testCompaction(t *testing.T, s *suite) {
	if s.Compact == nil {
		t.Skip("this store has no history to compact")
	}
	store, _ := s.create(t, declared("c", 2))
	l := s.lead(t, "c")
	var newest atomic.Uint64
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	done := make(chan error, 1)
	go func() {
		done <- s.Other.Open("c").Watch(ctx, func(s membership.State) error {
			once.Do(func() { close(entered); <-release }) // between reading and watching
			newest.Store(s.Generation)
			return nil
		})
	}()
	<-entered
	for i := range 20 {
		s.declare(t, store, membership.AddNode(node(i+10)))
	}
	s.declare(t, store, membership.RemoveNode("n00000"))
	s.Compact(t)
	close(release)
	s.eventually(t, "a watcher behind the compaction catches up", func() bool { return newest.Load() == 22 })
	s.publish(t, store, l)
	s.Compact(t)
	s.declare(t, store, membership.AddNode(node(99)))
	s.eventually(t, "it goes on afterwards", func() bool { return newest.Load() == 23 })
	cancel()
	wantErr(t, "Watch", <-done, context.Canceled)
}
