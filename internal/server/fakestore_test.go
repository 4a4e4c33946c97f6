package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// fakeStore is a directory with one cluster, "cache", whose state a test sets as
// it likes, also to what no store would do by itself: going back, forking, being
// another one, not answering.
type fakeStore struct {
	mu      sync.Mutex
	st      membership.State
	chain   map[topology.Ref]bool
	err     error // what every call returns; nil = it works
	asked   int   // calls of Descends
	deleted []topology.ClusterID
	changed chan struct{}
}

func newFakeStore() *fakeStore {
	return &fakeStore{chain: make(map[topology.Ref]bool), changed: make(chan struct{})}
}

// show makes t the head, and everything of l's chain provable.
func (f *fakeStore) show(t *topology.Topology, chain ...*topology.Topology) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.st = membership.State{ID: t.ClusterID(), Epoch: t.Version().Epoch, History: t.Ref().History, Generation: f.st.Generation + 1, Applied: f.st.Generation + 1, Head: t, Overlay: f.st.Overlay,
		Declared: topology.Declared{Cluster: "cache", Spec: t.Spec(), Nodes: t.Nodes()}}
	f.chain = map[topology.Ref]bool{t.Ref(): true}
	for _, c := range chain {
		f.chain[c.Ref()] = true
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// fail makes every call return err; nil ends that.
func (f *fakeStore) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeStore) read() (membership.State, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.st, f.changed, f.err
}

func (f *fakeStore) Load(context.Context) (membership.State, error) {
	st, _, err := f.read()
	return st, err
}

func (f *fakeStore) Declare(_ context.Context, e membership.Edit) (membership.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return membership.State{}, f.err
	}
	next, err := f.st.Apply(e)
	if err == nil {
		f.st = next
	}
	return next, err
}

func (f *fakeStore) Deleted(context.Context) ([]topology.ClusterID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deleted, f.err
}

func (f *fakeStore) Publish(context.Context, membership.Leadership, membership.Publication) error {
	return membership.ErrNotLeader
}

func (f *fakeStore) Watch(ctx context.Context, fn func(membership.State) error) error {
	for {
		st, changed, err := f.read()
		if err == nil {
			if err := fn(st); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (f *fakeStore) Version(context.Context, topology.Version) (*topology.Topology, error) {
	st, _, err := f.read()
	return st.Head, err
}

func (f *fakeStore) Movement(context.Context, topology.Version) (placement.Report, error) {
	return placement.Report{}, membership.ErrNoVersion
}

func (f *fakeStore) Versions(context.Context) ([]membership.VersionInfo, error) { return nil, nil }

func (f *fakeStore) Descends(_ context.Context, ref topology.Ref) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.chain[ref], f.err
}

func (f *fakeStore) Show(_ context.Context, s membership.Shown) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return false, f.err
	}
	inChain := false
	for ref := range f.chain {
		inChain = inChain || ref.Version == s.Ref.Version && ref.Digest == s.Ref.Digest
	}
	if !f.st.Position().WentBack(s.Ref, inChain) {
		return false, nil
	}
	changed, err := f.st.Admit(f.st.Epoch, s)
	if changed {
		close(f.changed)
		f.changed = make(chan struct{})
	}
	return err == nil, err
}

func (f *fakeStore) Bump(context.Context, membership.Leadership, membership.Bump) error {
	return membership.ErrNotLeader
}

func (f *fakeStore) Freeze(context.Context, *membership.Freeze) (membership.State, error) {
	st, _, err := f.read()
	return st, err
}

func (f *fakeStore) Delete(context.Context, string, topology.ClusterID) error {
	return membership.ErrNoCluster
}

func (f *fakeStore) Create(context.Context, topology.Declared, string, string) (membership.State, error) {
	_, _, err := f.read()
	return membership.State{}, err
}

func (f *fakeStore) List(context.Context) ([]string, error) {
	_, _, err := f.read()
	return []string{"cache"}, err
}

func (f *fakeStore) Open(string) membership.ClusterStore { return f }

func (f *fakeStore) WatchNames(ctx context.Context, fn func([]string) error) error {
	if err := fn([]string{"cache"}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// line publishes versions without a store.
type line struct {
	t     testing.TB
	id    topology.ClusterID
	hist  topology.History
	epoch uint64
	table *placement.Table
}

func newLine(t testing.TB) *line {
	return &line{t: t, id: topology.NewClusterID(), hist: topology.NewHistory(), epoch: 1}
}

func (l *line) copy() *line { c := *l; return &c }

func (l *line) newEpoch() { l.epoch, l.hist = l.epoch+1, topology.NewHistory() }

// next makes the next version, a ring of n nodes.
func (l *line) next(n int) *topology.Topology {
	l.t.Helper()
	d := topology.Draft{Cluster: "cache", ID: l.id, History: l.hist, Version: topology.Version{Epoch: l.epoch, Seq: 1}, Spec: topology.Spec{Algorithm: topology.Ring}}
	if l.table != nil && l.table.Topology().Version().Epoch == l.epoch {
		d.Version.Seq = l.table.Topology().Version().Seq + 1
	}
	for i := range n {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("node-%03d", i), Weight: 1})
	}
	table, err := placement.Update(l.table, d)
	if err != nil {
		l.t.Fatal(err)
	}
	l.table = table
	return table.Topology()
}
