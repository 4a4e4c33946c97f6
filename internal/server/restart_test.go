package server_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/sdk"
)

// until waits for ok to hold.
func until(t *testing.T, c *sdk.Client, what string, ok func(sdk.State) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(c.State()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v", what, c.State())
		}
	}
}

// TestRestartWithoutServer: a client that is restarted while no server runs
// routes by its snapshot, and goes on when a server is back (field case sdk-02).
func TestRestartWithoutServer(t *testing.T) {
	l := newLine(t)
	v1, v2 := l.next(3), l.next(4)
	store := newFakeStore()
	store.show(v1)
	r := run(t, server.Config{Directory: store})
	path := filepath.Join(t.TempDir(), "cache.topology")
	c := follow(t, []sdk.Option{sdk.WithSnapshot(path)}, r.addr)
	reaches(t, c, v1.Version())
	c.Close()
	r.stop()

	store.show(v2, v1)
	other := run(t, server.Config{Directory: store})
	c = follow(t, []sdk.Option{sdk.WithSnapshot(path)}, r.addr) // nobody is there
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, c, "the server is missed", func(st sdk.State) bool { return errors.Is(st.Problem, membership.ErrUnreachable) })
	if route, err := c.Route("k"); err != nil || route.Version() != v1.Version() || c.State().Origin != sdk.OriginSnapshot {
		t.Fatalf("%v, %v, %+v", route.Version(), err, c.State())
	}
	c.Close()
	c = follow(t, []sdk.Option{sdk.WithSnapshot(path)}, r.addr, other.addr)
	reaches(t, c, v2.Version())
}

// TestSnapshotAhead: a client whose snapshot is newer than the server starts
// from it, presents it and waits, however often it is restarted; it goes on when
// the server catches up.
func TestSnapshotAhead(t *testing.T) {
	l := newLine(t)
	v1 := l.next(3)
	v2, v3 := l.next(4), l.next(5)
	store := newFakeStore()
	store.show(v2, v1)
	r := run(t, server.Config{Directory: store})
	path := filepath.Join(t.TempDir(), "cache.topology")
	c := follow(t, []sdk.Option{sdk.WithSnapshot(path)}, r.addr)
	reaches(t, c, v2.Version())
	c.Close()

	behind := newFakeStore()
	behind.show(v1)
	late := run(t, server.Config{Directory: behind})
	for range 2 {
		c = follow(t, []sdk.Option{sdk.WithSnapshot(path)}, late.addr)
		until(t, c, "the server is behind", func(st sdk.State) bool { return errors.Is(st.Problem, sdk.ErrOlder) })
		if st := c.State(); st.Held != v2.Ref() || st.Origin != sdk.OriginSnapshot {
			t.Fatalf("%+v", st)
		}
		if route, err := c.Route("k"); err != nil || route.Version() != v2.Version() {
			t.Fatalf("%v, %v", route.Version(), err)
		}
		c.Close()
	}
	c = follow(t, []sdk.Option{sdk.WithSnapshot(path)}, late.addr)
	behind.show(v2, v1)
	until(t, c, "caught up", func(st sdk.State) bool { return st.Origin == sdk.OriginSource && st.Held == v2.Ref() })
	behind.show(v3, v2, v1)
	reaches(t, c, v3.Version())
}
