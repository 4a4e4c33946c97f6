// Package memlease keeps the leases of package owner in memory, for tests and for
// servers of one process. Law and errors are those of owner.Leases.
package memlease

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/topology"
)

// errAway is what calls fail with while the store is away.
var errAway = errors.New("memlease: away")

// Store is a store of leases. Make one with New. Safe for concurrent use.
type Store struct {
	mu       sync.Mutex
	revision uint64
	records  map[string]*lease
	away     map[string]bool
}

var _ owner.Leases = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{records: make(map[string]*lease), away: make(map[string]bool)} }

type lease struct {
	store *Store
	id    string
	ttl   time.Duration
	until time.Time
	ref   topology.Ref
}

// Away makes the store unreachable for node id, or reachable again.
func (s *Store) Away(id string, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[id] = away
}

// expire removes what has run out; mu is held.
func (s *Store) expire() {
	for id, l := range s.records {
		if !time.Now().Before(l.until) {
			delete(s.records, id)
			s.revision++
		}
	}
}

func (s *Store) enter(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.expire()
	if s.away[id] {
		return errAway
	}
	return nil
}

// Take is owner.Leases.Take.
func (s *Store) Take(ctx context.Context, id string, ttl time.Duration) (owner.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(ctx, id); err != nil {
		return nil, err
	}
	if s.records[id] != nil {
		return nil, owner.ErrTaken
	}
	l := &lease{store: s, id: id, ttl: ttl, until: time.Now().Add(ttl)}
	s.records[id] = l
	s.revision++
	return l, nil
}

// held begins a call on the lease; mu is held.
func (l *lease) held(ctx context.Context) error {
	if err := l.store.enter(ctx, l.id); err != nil {
		return err
	}
	if l.store.records[l.id] != l {
		return owner.ErrLost
	}
	return nil
}

// Settle is owner.Lease.Settle.
func (l *lease) Settle(ctx context.Context, ref topology.Ref) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if err := l.held(ctx); err != nil {
		return err
	}
	l.ref = ref
	l.store.revision++
	return nil
}

// Records is owner.Lease.Records.
func (l *lease) Records(ctx context.Context) ([]owner.Record, uint64, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if err := l.held(ctx); err != nil {
		return nil, 0, err
	}
	var all []owner.Record
	for _, r := range l.store.records {
		all = append(all, owner.Record{ID: r.id, Settled: r.ref})
	}
	return all, l.store.revision, nil
}

// Renew is owner.Lease.Renew.
func (l *lease) Renew(ctx context.Context) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if err := l.held(ctx); err != nil {
		return err
	}
	l.until = time.Now().Add(l.ttl)
	return nil
}

// End is owner.Lease.End.
func (l *lease) End(ctx context.Context) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if err := l.held(ctx); err != nil {
		return err
	}
	delete(l.store.records, l.id)
	l.store.revision++
	return nil
}
