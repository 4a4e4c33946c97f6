package etcdsource_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/etcdsource"
	"github.com/shardd/shardd/topology"
)

// watched follows the store as a server does, which hears what clients present.
func (w *world) watched() {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.store.Watch(ctx, func(membership.State) error { return nil }) }()
	w.t.Cleanup(func() { cancel(); <-done })
}

func (w *world) evidence() int {
	w.t.Helper()
	r, err := w.client.Get(w.t.Context(), w.keys.Evidences(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		w.t.Fatal(err)
	}
	return int(r.Count)
}

func (w *world) wait(what string, ok func(membership.State) bool) membership.State {
	w.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(2 * time.Millisecond) { // a real etcd: no bubble of time
		s, err := w.store.Load(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not within 15 s: %s; %+v, %d keys", what, s.Standing, w.evidence())
		}
	}
}

// TestEvidence: what a client holds and the store does not continue stops
// publication, by name, until the epoch is raised; then the client goes on. The key
// is removed.
func TestEvidence(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	first := w.publish()
	ahead := first.Ref()
	ahead.Version.Seq, ahead.Digest[0] = 9, ahead.Digest[0]+1
	var log strings.Builder // read when the source has ended
	logger := hclog.New(&hclog.LoggerOptions{Output: &log})
	f := follow(t, etcdsource.Config{Client: server.Client(), Name: "host-7", Logger: logger}, ahead, nil)
	others := []*follower{follow(t, etcdsource.Config{Client: server.Client()}, ahead, nil), follow(t, etcdsource.Config{Client: server.Client()}, ahead, nil)}
	f.problem(sdk.ErrOlder, "")
	w.wait("it is presented, once", func(membership.State) bool { return w.evidence() == 1 })
	w.watched()
	s := w.wait("it is heard", func(s membership.State) bool { return len(s.Shown) > 0 && w.evidence() == 0 })
	if got := s.Shown[0]; len(s.Shown) != 1 || got.Ref != ahead || got.Trusted || !strings.HasPrefix(got.By, "client ") || !strings.HasSuffix(got.By, ", which reads etcd itself,") {
		t.Errorf("shown: %+v", s.Shown)
	}
	w.declare(membership.SetWeight("n0", 2))
	if s, err := w.store.Load(t.Context()); err != nil || !errors.Is(s.Err(s.Position().Head), membership.ErrWentBack) {
		t.Errorf("%v, standing %+v", err, s.Standing)
	}
	b, err := s.Bump(nil, topology.Cause{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.(membership.Epochs).Bump(t.Context(), w.l, b); err != nil {
		t.Fatal(err)
	}
	f.want(b.Next)
	for _, o := range others {
		o.want(b.Next)
		o.stop()
	}
	f.stop()
	if n := strings.Count(log.String(), "the servers are told"); n != 1 || !strings.Contains(log.String(), ahead.String()) {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

func evidenceOf(t *testing.T, ref topology.Ref, by string) string {
	t.Helper()
	b, err := etcdkv.EncodeRecord(etcdkv.Evidence{Ref: ref, By: by})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNoEvidence: what is no evidence by a linearizable reading, and garbage, is
// removed and stops nothing.
func TestNoEvidence(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	first := w.publish()
	newest := w.weight(2)
	other, older := newest.Ref(), first.Ref()
	other.ClusterID[0]++
	older.Version.Epoch = 0
	for i, ref := range []topology.Ref{first.Ref(), newest.Ref(), other, older} {
		ref.Digest[15] ^= byte(i) // a name of its own
		key := w.keys.Evidence(ref.Digest)
		ref.Digest[15] ^= byte(i)
		w.put(key, evidenceOf(t, ref, "x"))
	}
	w.put(w.keys.Evidences()+"garbage", "{")
	w.put(w.keys.Evidences()+"empty", "{}")
	far := first.Ref()
	far.Version.Epoch = 1 << 40
	w.put(w.keys.Evidence(topology.Digest{1}), evidenceOf(t, far, "liar"))
	w.watched()
	s := w.wait("all are looked at", func(membership.State) bool { return w.evidence() == 0 })
	if len(s.Shown) != 0 {
		t.Errorf("shown: %+v", s.Shown)
	}
	w.weight(3)
}
