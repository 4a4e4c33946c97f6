// Package memstore is a membership store in memory, for tests, examples and
// simulations: the same behaviour as membership/etcdstore (membership/storetest
// holds both to it), without a process, a network or a clock. Nothing of it
// survives the process.
//
// One Store is a whole control plane: directory, clusters and elections. All
// methods are safe for concurrent use. Operations cost what copying the list of
// nodes costs.
package memstore

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Store holds clusters and elections. Make one with New.
type Store struct {
	mu       sync.Mutex
	clusters map[string]*cluster
	leaders  map[string]*leadership
	changed  chan struct{}                   // closed and replaced on every change
	away     bool                            // nodes cannot reach it; see Away
	deleted  map[string][]topology.ClusterID // by name, the newest first
}

var (
	_ membership.Directory = (*Store)(nil)
	_ membership.Elector   = (*Store)(nil)
)

type cluster struct {
	state    membership.State
	versions []version // kept, ascending
	chain    map[topology.Version]topology.Ref
	live     map[string]*presence // by node
	marks    map[string]membership.Mark
	overlay  *membership.Overlay
	rolls    uint64 // raised with every change of live and marks
}

type version struct {
	info     membership.VersionInfo
	topology *topology.Topology
	movement placement.Report
}

// New returns an empty store.
func New() *Store {
	return &Store{clusters: map[string]*cluster{}, leaders: map[string]*leadership{}, changed: make(chan struct{}), deleted: map[string][]topology.ClusterID{}}
}

// notify wakes everybody who waits; s.mu is held.
func (s *Store) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Create makes an empty cluster; see membership.Directory.
func (s *Store) Create(_ context.Context, d topology.Declared, by, why string) (membership.State, error) {
	state := membership.State{ID: topology.NewClusterID(), Epoch: 1, History: topology.NewHistory(), Declared: topology.Declared{Cluster: d.Cluster}}
	edit := membership.ReplaceAll(d)
	edit.By, edit.Why = by, why
	state, err := state.Apply(edit)
	if err != nil {
		return membership.State{}, fmt.Errorf("memstore: create: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clusters[d.Cluster] != nil {
		return membership.State{}, fmt.Errorf("memstore: create: %w: cluster %q", membership.ErrExists, d.Cluster)
	}
	s.clusters[d.Cluster] = &cluster{state: state, chain: map[topology.Version]topology.Ref{},
		live: map[string]*presence{}, marks: map[string]membership.Mark{}}
	s.notify()
	return state, nil
}

// List returns the names of all clusters, ascending.
func (s *Store) List(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names(), nil
}

func (s *Store) names() []string {
	names := make([]string, 0, len(s.clusters))
	for name := range s.clusters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// WatchNames calls fn with the names now and after every change.
func (s *Store) WatchNames(ctx context.Context, fn func([]string) error) error {
	var last []string
	return s.watch(ctx, func() (func() error, error) {
		names := s.names()
		if last != nil && slices.Equal(names, last) {
			return nil, nil
		}
		last = names
		return func() error { return fn(slices.Clone(names)) }, nil
	})
}

// watch calls look under the lock now and after every change, and what it
// returns without the lock. Changes meanwhile are seen at once: latest wins.
func (s *Store) watch(ctx context.Context, look func() (func() error, error)) error {
	for {
		s.mu.Lock()
		changed := s.changed
		call, err := look()
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if call != nil {
			if err := call(); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Open returns the store of a cluster.
func (s *Store) Open(name string) membership.ClusterStore { return &clusterStore{s: s, name: name} }

// Campaign blocks until this process leads the cluster or ctx ends.
func (s *Store) Campaign(ctx context.Context, cluster, _ string) (membership.Leadership, error) {
	for {
		s.mu.Lock()
		changed := s.changed
		if s.leaders[cluster] == nil {
			l := &leadership{s: s, cluster: cluster, done: make(chan struct{})}
			s.leaders[cluster] = l
			s.mu.Unlock()
			return l, nil
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("memstore: campaign: %w", ctx.Err())
		}
	}
}

// Depose ends the leadership of a cluster as the loss of its lease does. It
// reports whether there was one.
func (s *Store) Depose(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leaders[cluster]
	if l == nil {
		return false
	}
	l.end()
	return true
}

type leadership struct {
	s       *Store
	cluster string
	done    chan struct{}
}

func (l *leadership) Done() <-chan struct{} { return l.done }

func (l *leadership) Resign(context.Context) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.end()
	return nil
}

// end is called with the lock held, perhaps more than once.
func (l *leadership) end() {
	if l.s.leaders[l.cluster] == l {
		delete(l.s.leaders, l.cluster)
		if cl := l.s.clusters[l.cluster]; cl != nil {
			cl.overlay = nil
		}
		close(l.done)
		l.s.notify()
	}
}
