package server_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
)

// slowStore takes its time to publish.
type slowStore struct {
	*memstore.Store
	take     time.Duration
	declared atomic.Int64
}

type slowCluster struct {
	membership.ClusterStore
	s *slowStore
}

func (s *slowStore) Open(name string) membership.ClusterStore {
	return slowCluster{s.Store.Open(name), s}
}

func (c slowCluster) Declare(ctx context.Context, e membership.Edit) (membership.State, error) {
	st, err := c.ClusterStore.Declare(ctx, e)
	c.s.declared.Add(1)
	return st, err
}

func (c slowCluster) Publish(ctx context.Context, l membership.Leadership, p membership.Publication) error {
	time.Sleep(c.s.take)
	return c.ClusterStore.Publish(ctx, l, p)
}

// TestEndAnswersEdits: edits that a server has taken are answered with their
// version though it ends, be it its own or another leader's; a version that does
// not come holds nothing up for long.
func TestEndAnswersEdits(t *testing.T) {
	for name, c := range map[string]struct {
		take      time.Duration
		leads     bool // the server that ends
		other     bool // another one may lead
		published bool
	}{
		"its own":          {30 * time.Millisecond, true, false, true},
		"another leader's": {600 * time.Millisecond, false, true, true},
		"of its successor": {300 * time.Millisecond, true, true, true},
		"that of nobody":   {time.Minute, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &slowStore{Store: memstore.New(), take: c.take}
			var first membership.Elector
			if c.leads {
				first = s
			}
			r := run(t, server.Config{Directory: s, Elector: first, ShutdownTimeout: 8 * time.Second})
			if _, err := s.Create(t.Context(), declared(3), "", ""); err != nil {
				t.Fatal(err)
			}
			if c.leads {
				r.put(declared(3)) // it leads by now
			}
			if c.other {
				run(t, server.Config{Directory: s, Elector: s})
			}
			before := s.declared.Load()
			const edits = 10
			answers := make(chan api.EditResult, edits)
			for i := range edits {
				go func() {
					weight := uint32(i + 2)
					res, err := r.api.EditNode(t.Context(), "cache", "node-001", api.VerbWeight, api.NodeEdit{Weight: &weight}, api.EditOptions{Wait: 30 * time.Second})
					if err != nil {
						t.Error(err)
					}
					answers <- res
				}()
			}
			for s.declared.Load() < before+edits {
				time.Sleep(time.Millisecond)
			}
			began := time.Now()
			r.stop()
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the server took %s to end", took)
			}
			for range edits {
				if res := <-answers; res.Published != c.published || c.published && res.Version.IsZero() {
					t.Errorf("%+v", res)
				}
			}
		})
	}
}

// TestHandoverWaitsForNobody: a server that ends hands its leaderships over at
// once, though a request is in flight whose body does not come.
func TestHandoverWaitsForNobody(t *testing.T) {
	store := memstore.New()
	r := run(t, server.Config{Directory: store, Elector: store, ShutdownTimeout: 20 * time.Second})
	r.put(declared(3))
	slow, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	_, err = slow.Write([]byte("PUT /v1/clusters/cache/spec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"))
	if err != nil {
		t.Fatal(err)
	}
	r.ready() // an answer later than the request above was accepted
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.stop()
	}()
	leading, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := store.Campaign(leading, "cache", "other")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Resign(t.Context())
	select {
	case <-ended:
		t.Error("the server waited for the request before it handed over, or for none")
	default:
	}
	slow.Close()
	<-ended
}
