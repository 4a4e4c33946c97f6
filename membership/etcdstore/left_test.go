package etcdstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/membership/etcdstore"
)

// TestLeaderComesBack: a leadership that could not be given up while etcd was
// away does not keep the same process from leading again, for as long as its
// lease still lasts.
func TestLeaderComesBack(t *testing.T) {
	t.Parallel()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint(), "http://"))
	s := open(t, proxy.Addr, etcdstore.Options{TTL: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := s.Create(ctx, one("c"), "", ""); err != nil {
		t.Fatal(err)
	}
	first, err := s.Campaign(ctx, "c", "a")
	if err != nil {
		t.Fatal(err)
	}
	proxy.Cut(true)
	resigning, done := context.WithTimeout(ctx, 100*time.Millisecond)
	defer done()
	if err := first.Resign(resigning); err == nil {
		t.Fatal("resigned without etcd")
	}
	proxy.Cut(false)
	second, err := s.Campaign(ctx, "c", "a")
	if err != nil {
		t.Fatalf("campaigning again: %v", err)
	}
	if err := second.Resign(ctx); err != nil {
		t.Error(err)
	}
}
