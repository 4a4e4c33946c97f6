package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// view is one reading of a cluster, shared by all that look at it. It never
// changes, except that what is computed from it is kept.
type view struct {
	state membership.State
	// line counts how often the versions under this name stopped being one
	// chain while this process watched; lineErr says why the last time.
	line    uint64
	lineErr *api.Error
	sore    *api.Error // why the line broke, until an epoch is raised after it
	doubted bool       // state.Overlay is nil because nobody confirms it

	message func() ([]byte, error) // the full message, one line
	table   func() (*placement.Table, error)
	deltas  deltas // messages for those who hold an earlier version
}

func newView(st membership.State, line uint64, lineErr *api.Error) *view {
	v := &view{state: st, line: line, lineErr: lineErr}
	v.message = sync.OnceValues(func() ([]byte, error) {
		head := st.Head
		line, err := json.Marshal(api.Message{Type: api.MessageFull, ClusterID: head.ClusterID(), Version: head.Version(),
			Digest: head.Digest(), Encoded: head.Encode()})
		return append(line, '\n'), err
	})
	v.table = sync.OnceValues(func() (*placement.Table, error) { return placement.New(st.Head) })
	return v
}

// head returns what a client that has this view's version holds; zero before
// the first version.
func (v *view) head() topology.Ref {
	if v.state.Head == nil {
		return topology.Ref{}
	}
	return v.state.Head.Ref()
}

func (v *view) etag() api.ETag {
	return api.ETag{Version: v.head().Version, Generation: v.state.Generation, Cluster: v.state.ID}
}

// keptTables is the number of tables of earlier versions that a hub keeps for
// clients that are still fetching them.
const keptTables = 8

// hub is one cluster as this process sees it: one watch of the store, and any
// number of readers that wait for the next view.
type hub struct {
	name    string
	store   membership.ClusterStore
	logger  hclog.Logger
	timeout time.Duration
	stop    context.CancelFunc // ends the hub's goroutines
	onLost  func()             // called when the cluster turns out not to exist

	mu      sync.Mutex
	ruler   *membership.Controller // nil = this process never publishes
	view    *view                  // nil before the first reading, and while gone
	gone    bool                   // the cluster does not exist
	line    uint64                 // see view
	lineErr *api.Error
	changed chan struct{} // closed and replaced with every change of view or gone
	tables  []*topology.Object
	bases   bases // versions served lately

	id        string                     // of this process, in messages
	kept      *keeper                    // what this process has served last
	sore      *api.Error                 // see view
	presented map[topology.Ref]time.Time // by clients, lately

	proving sync.Mutex // one question to the store at a time
	proved  *proofs
}

func newHub(name string, store membership.ClusterStore, timeout time.Duration, logger hclog.Logger) *hub {
	return &hub{name: name, store: store, timeout: timeout, logger: logger,
		changed: make(chan struct{}), proved: newProofs(), kept: &keeper{name: name}, presented: make(map[topology.Ref]time.Time)}
}

// run watches the store until ctx ends. A store that is out of reach is waited
// for; meanwhile the last view stays.
func (h *hub) run(ctx context.Context) {
	for {
		err := h.store.Watch(ctx, func(st membership.State) error { return h.update(ctx, st) })
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, membership.ErrNoCluster) {
			h.lost()
		} else {
			h.logger.Warn("watch of the store ended; starting it again", "error", err)
		}
		if pause(ctx, time.Second) != nil {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// update makes st the view, after a look at whether it continues the one before.
// It is called by run's goroutine alone.
func (h *hub) update(ctx context.Context, st membership.State) error {
	prev, _, _ := h.look()
	var broke *api.Error
	if prev != nil {
		var err error
		if broke, err = h.broken(ctx, prev.state, st); err != nil {
			return err
		}
	}
	deleted := broke != nil && prev.state.ID != st.ID && h.deleted(ctx, prev.state.ID)
	behind := broke != nil
	if prev == nil || broke != nil {
		evidence, err := h.presentOwn(ctx, st)
		if err != nil {
			return err
		}
		behind = behind || evidence
	}
	if !behind {
		h.keep(st)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if prev != nil && st.Head != nil && st.Head.Version().Epoch > prev.head().Version.Epoch {
		h.sore = nil
	}
	if broke != nil {
		h.line, h.lineErr = h.line+1, broke
		if h.sore = broke; deleted { // by word, and made anew: another cluster, and nothing is wrong
			h.sore = nil
		}
		h.proved.reset()
		h.logger.Error("versions do not continue what was served before; the store was replaced or went back",
			"before", prev.head(), "reason", broke.Message)
	}
	if st.Head != nil {
		h.proved.add(st.Head.Ref())
		h.keepTables(st.Head)
		h.bases.add(st.Head)
	}
	h.view, h.gone = newView(st, h.line, h.lineErr), false
	h.view.sore = h.sore
	h.wake()
	return nil
}

// broken says why next is no successor of prev, or returns nil. The store's
// watch skips versions, so where the parent does not tell, the store is asked
// until it answers: without proof the view stays as it is.
func (h *hub) broken(ctx context.Context, prev, next membership.State) (*api.Error, error) {
	if prev.ID != next.ID {
		return clusterError(h.name, prev.ID, next.ID), nil
	}
	if prev.Head == nil {
		return nil, nil
	}
	a := prev.Head.Ref()
	if next.Head == nil {
		return olderError(h.name, a, topology.Ref{}), nil
	}
	b := next.Head.Ref()
	switch {
	case a == b, b.Version.Epoch > a.Version.Epoch, b.History == a.History && next.Head.Parent() == a.Digest:
		return nil, nil
	case b.Version.Epoch < a.Version.Epoch, b.History == a.History && b.Version.Seq < a.Version.Seq:
		return olderError(h.name, a, b), nil
	}
	for {
		ok, err := h.askStore(ctx, a)
		if err == nil && !ok {
			return forkedError(h.name, a, b), nil
		}
		if err == nil || !errors.Is(err, membership.ErrUnreachable) {
			return nil, err
		}
		if err := pause(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// deleted reports whether the cluster of this id was deleted by word.
func (h *hub) deleted(ctx context.Context, id topology.ClusterID) bool {
	d, ok := h.store.(membership.Deletions)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	ids, err := d.Deleted(ctx)
	if err != nil {
		h.logger.Warn("cannot tell whether the cluster was deleted by word", "id", id, "error", err)
	}
	return slices.Contains(ids, id)
}

func (h *hub) askStore(ctx context.Context, held topology.Ref) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	return h.store.Descends(ctx, held)
}

func (h *hub) lost() {
	h.mu.Lock()
	if !h.gone {
		h.gone, h.view = true, nil
		h.line++
		h.lineErr = api.FromError(noCluster(h.name))
		h.wake()
	}
	h.mu.Unlock()
	h.onLost()
}

func (h *hub) isGone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone
}

func (h *hub) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *hub) keepTables(t *topology.Topology) {
	for _, o := range t.Objects() {
		if h.table(o.Digest()) == nil {
			h.tables = append(h.tables, o)
		}
	}
	if n := len(h.tables) - keptTables; n > 0 {
		h.tables = append(h.tables[:0:0], h.tables[n:]...)
	}
}

// table returns a kept table, or nil. h.mu is held.
func (h *hub) table(d topology.Digest) *topology.Object {
	for _, o := range h.tables {
		if o.Digest() == d {
			return o
		}
	}
	return nil
}

// look returns the view and a channel that is closed when there is another one.
// The view is nil while the cluster has not been read; the error says that it
// does not exist.
func (h *hub) look() (*view, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return nil, h.changed, noCluster(h.name)
	}
	return h.view, h.changed, nil
}

// wait returns the first view for which ok is true. The error is ctx.Err() or
// says that the cluster does not exist.
func (h *hub) wait(ctx context.Context, ok func(*view) bool) (*view, error) {
	for {
		v, changed, err := h.look()
		if err != nil {
			return nil, err
		}
		if v != nil && ok(v) {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-changed:
		}
	}
}

// present returns the view, waiting for the first reading for at most the
// store's timeout.
func (h *hub) present(ctx context.Context) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	v, err := h.wait(ctx, func(*view) bool { return true })
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("cluster %s has not been read yet: %w", h.name, membership.ErrUnreachable)
	}
	return v, err
}

func noCluster(name string) error {
	return fmt.Errorf("%w: %q", membership.ErrNoCluster, name)
}
