package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/etcdstore"
	"github.com/shardd/shardd/topology"
)

// TestEditsTogether: edits that an outage has held up are written in a few
// transactions once it is over; the refused ones among them are refused alone,
// and everybody gets the state that its own edit made.
func TestEditsTogether(t *testing.T) {
	t.Parallel()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint(), "http://"))
	s := open(t, proxy.Addr, etcdstore.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := s.Create(ctx, one("c"), "", ""); err != nil {
		t.Fatal(err)
	}
	before, err := server.Client().Get(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	const n = 50
	proxy.Cut(true)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[uint64]int{}
	for i := range n {
		wg.Go(func() {
			state, err := s.Open("c").Declare(ctx, membership.AddNode(topology.Node{ID: fmt.Sprint("n", i/2), Weight: uint32(i + 1)}))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				seen[state.Generation]++
			case !errors.Is(err, membership.ErrExists):
				t.Errorf("edit %d: %v", i, err)
			}
		})
	}
	gone, leave := context.WithTimeout(ctx, 50*time.Millisecond)
	defer leave()
	if _, err := s.Open("c").Declare(gone, membership.AddNode(topology.Node{ID: "gone", Weight: 1})); err == nil {
		t.Error("an edit was made while etcd was away")
	}
	proxy.Cut(false)
	wg.Wait()
	state, err := s.Open("c").Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != n/2 || len(state.Declared.Nodes) != n/2+1 || state.Generation != n/2+1 {
		t.Errorf("%d edits were made, with %d generations and %d nodes; want %d", state.Generation-1, len(seen), len(state.Declared.Nodes), n/2)
	}
	after, err := server.Client().Get(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	if writes := after.Header.Revision - before.Header.Revision; writes > 4 {
		t.Errorf("%d writes for edits that came together", writes)
	}
}

// TestEditTooLarge: an edit that makes the declared state too large is refused,
// and those that came with it are made.
func TestEditTooLarge(t *testing.T) {
	t.Parallel()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint(), "http://"))
	s := open(t, proxy.Addr, etcdstore.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := s.Create(ctx, one("c"), "", ""); err != nil {
		t.Fatal(err)
	}
	proxy.Cut(true)
	errs := make([]error, 10)
	var wg sync.WaitGroup
	for i := range errs {
		e := membership.AddNode(topology.Node{ID: fmt.Sprint("n", i), Weight: 1})
		if i%3 == 2 {
			e.Replace = map[string]string{"x": strings.Repeat("long", 600_000)}
		}
		wg.Go(func() { _, errs[i] = s.Open("c").Declare(ctx, e) })
	}
	time.AfterFunc(50*time.Millisecond, func() { proxy.Cut(false) })
	wg.Wait()
	for i, err := range errs {
		if large := i%3 == 2; large != errors.Is(err, membership.ErrTooLarge) || !large && err != nil {
			t.Errorf("edit %d: %v", i, err)
		}
	}
}
