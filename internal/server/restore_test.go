package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/topology"
)

func (r *running) ready() (int, string) {
	r.t.Helper()
	resp, body := r.call("GET", "/readyz", "")
	return resp.status, body
}

func (r *running) eventually(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func head(t *testing.T, s *memstore.Store) topology.Ref {
	t.Helper()
	st, err := s.Open("cache").Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Position().Head
}

// reader is a server that publishes nothing, so that what stops is seen.
func reader(t *testing.T, s *memstore.Store, dir string) *running {
	return run(t, server.Config{Directory: s, DataDir: dir, ID: "reader"})
}

// TestRestoredUnderServer: the store is restored under a leading server, which
// raises the epoch by itself, tells so, and is ready again.
func TestRestoredUnderServer(t *testing.T) {
	r, store := withStore(t)
	r.put(declared(3))
	restore := store.Backup("cache")
	r.node("node-000", api.VerbWeight, api.NodeEdit{Weight: ptr(5)})
	restore()
	r.eventually("the epoch is raised", func() bool { return head(t, store).Version == topology.Version{Epoch: 2, Seq: 1} })
	r.eventually("ready", func() bool { status, _ := r.ready(); return status == http.StatusOK })
	if got := r.node("node-001", api.VerbWeight, api.NodeEdit{Weight: ptr(7)}); got.Version != (topology.Version{Epoch: 2, Seq: 2}) {
		t.Errorf("next is %s", got.Version)
	}
	h, err := r.api.History(t.Context(), "cache", 0)
	if err != nil || h.Versions[1].Cause.Kind != membership.CauseWentBack {
		t.Errorf("history %+v, %v", h, err)
	}
}

// TestRestoredBetween: the store is restored while no server runs; the file of
// the one that comes back is trusted evidence.
func TestRestoredBetween(t *testing.T) {
	store, dir := memstore.New(), t.TempDir()
	r := run(t, server.Config{Directory: store, Elector: store, DataDir: dir})
	r.put(declared(3))
	restore := store.Backup("cache")
	r.node("node-000", api.VerbWeight, api.NodeEdit{Weight: ptr(5)})
	lost := head(t, store)
	r.stop()
	files, err := filepath.Glob(filepath.Join(dir, "cache.*.topology"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := topology.UnmarshalSaved(b); err != nil || kept.Ref() != lost {
		t.Fatalf("the file holds %v, %v", kept, err)
	}
	restore()

	look := reader(t, store, dir)
	look.eventually("not ready", func() bool {
		status, body := look.ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "server reader") && strings.Contains(body, lost.Version.String())
	})
	if text := look.metrics(); !strings.Contains(text, `shardd_store_went_back{cluster="cache"} 1`) {
		t.Error("the metric is not 1")
	}
	look.stop()
	again := run(t, server.Config{Directory: store, Elector: store, DataDir: dir})
	again.eventually("the epoch is raised", func() bool { return head(t, store).Version.Epoch == 2 })
	m, err := again.api.Movement(t.Context(), "cache", topology.Version{Epoch: 2, Seq: 1})
	if err != nil || m.Ratio == 0 {
		t.Errorf("movement against what the file had: %+v, %v", m.Ratio, err)
	}
}

// TestDamagedKeptFile: a file that cannot be used is told and replaced.
func TestDamagedKeptFile(t *testing.T) {
	store, dir := memstore.New(), t.TempDir()
	st, err := store.Create(t.Context(), declared(3), "", "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "cache."+st.ID.String()+".topology")
	if err := os.WriteFile(path, []byte("not a topology"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, server.Config{Directory: store, Elector: store, DataDir: dir})
	r.eventually("the file is whole", func() bool {
		b, _ := os.ReadFile(path)
		kept, err := topology.UnmarshalSaved(b)
		return err == nil && kept.Version().Seq == 1
	})
	r.stop()
	if !strings.Contains(r.log.String(), "kept version cannot be used") {
		t.Error("the log does not say so")
	}
}

func (r *running) metrics() string {
	r.t.Helper()
	_, body := r.call("GET", "/metrics", "")
	return body
}

func ptr(w uint32) *uint32 { return &w }

// TestClientShows: a client's version stops publication until an operator's
// bump, which lets that client go on.
func TestClientShows(t *testing.T) {
	r, store := withStore(t)
	r.put(declared(3))
	here := head(t, store)
	held := here
	held.Version, held.Digest = topology.Version{Epoch: 3, Seq: 9}, topology.Digest{9}
	_, err := r.api.Bump(t.Context(), "cache", api.BumpRequest{}, api.EditOptions{})
	if !errors.Is(err, api.ErrDeclined) || head(t, store) != here {
		t.Fatalf("a bump without evidence: %v", err)
	}
	watch := func() error {
		return r.api.Watch(t.Context(), "cache", held, 0, func(m api.Message) error {
			if m.Type == api.MessageFull {
				return io.EOF
			}
			return nil
		})
	}
	if err := watch(); !errors.Is(err, api.ErrOlder) {
		t.Fatalf("watch: %v", err)
	}
	r.eventually("not ready", func() bool {
		status, body := r.ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "client 127.0.0.1 has 3.9@")
	})
	res, err := r.api.EditNode(t.Context(), "cache", "node-000", api.VerbWeight, api.NodeEdit{Weight: ptr(4)}, api.EditOptions{Wait: 50 * time.Millisecond})
	if err != nil || res.Published || head(t, store) != here {
		t.Errorf("an edit: published %v, %v", res.Published, err)
	}
	bumped, err := r.api.Bump(t.Context(), "cache", api.BumpRequest{}, api.EditOptions{Why: "restored monday's backup"})
	if err != nil || bumped.Version != (topology.Version{Epoch: 4, Seq: 1}) || bumped.From != here.Version {
		t.Fatalf("bump: %+v, %v", bumped, err)
	}
	if err := watch(); !errors.Is(err, io.EOF) {
		t.Errorf("the client after the bump: %v", err)
	}
	r.eventually("the edit is published", func() bool { return head(t, store).Version == topology.Version{Epoch: 4, Seq: 2} })
	if status, body := r.ready(); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
	info, err := r.api.History(t.Context(), "cache", 0)
	if err != nil || info.Versions[1].Cause.By != "tester" || info.Versions[1].Cause.Why != "restored monday's backup" {
		t.Errorf("history: %+v, %v", info.Versions, err)
	}
}

// TestClientWithoutID: a version without a cluster id is nobody's evidence.
func TestClientWithoutID(t *testing.T) {
	r, store := withStore(t)
	r.put(declared(3))
	resp, body := r.call("GET", "/v1/clusters/cache/watch?after=9.9&digest=09090909090909090909090909090909", "")
	if resp.status != http.StatusConflict {
		t.Fatalf("%d %s", resp.status, body)
	}
	st, err := store.Open("cache").Load(context.Background())
	if err != nil || len(st.Shown) > 0 {
		t.Errorf("%v, %v", st.Shown, err)
	}
}

func TestFreeze(t *testing.T) {
	r, store := withStore(t)
	r.put(declared(3))
	before := head(t, store)
	f, err := r.api.Freeze(t.Context(), "cache", api.EditOptions{Why: "fair"})
	if err != nil || !f.Frozen || f.By != "tester" || f.Why != "fair" {
		t.Fatalf("%+v, %v", f, err)
	}
	_, err = r.api.EditNode(t.Context(), "cache", "node-000", api.VerbRemove, api.NodeEdit{}, api.EditOptions{})
	if !errors.Is(err, membership.ErrFrozen) || !strings.Contains(err.Error(), "tester: fair") {
		t.Errorf("an edit: %v", err)
	}
	if _, err = r.api.PutSpec(t.Context(), declared(5), api.EditOptions{}); !errors.Is(err, membership.ErrFrozen) {
		t.Errorf("a spec: %v", err)
	}
	if head(t, store) != before {
		t.Error("the head changed")
	}
	if f, err = r.api.Unfreeze(t.Context(), "cache", api.EditOptions{}); err != nil || f.Frozen || f.Pending != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	r.node("node-000", api.VerbRemove, api.NodeEdit{})
}

// TestClientsAfterRestore: clients of the SDK go forward over a restore, from the
// lost version to the new epoch, without an operator.
func TestClientsAfterRestore(t *testing.T) {
	r, store := withStore(t)
	r.put(declared(3))
	c := follow(t, nil, r.addr)
	reaches(t, c, topology.Version{Epoch: 1, Seq: 1})
	restore := store.Backup("cache")
	r.node("node-000", api.VerbWeight, api.NodeEdit{Weight: ptr(5)})
	r.node("node-001", api.VerbWeight, api.NodeEdit{Weight: ptr(5)})
	reaches(t, c, topology.Version{Epoch: 1, Seq: 3})
	restore()
	reaches(t, c, topology.Version{Epoch: 2, Seq: 1})
	if got := c.State().Held; got != head(t, store) {
		t.Errorf("the client holds %s, the store %s", got, head(t, store))
	}
}
