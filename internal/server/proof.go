package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// catchUp is how long a client that holds a newer version than this process has
// read yet waits for it, before it is told to ask elsewhere.
const catchUp = time.Second

// proofs remembers versions that are known to be in the chain of the newest one,
// so that many clients that come back at once do not all ask the store. What is
// in the chain once stays in it, as long as the line lasts.
type proofs struct {
	known map[topology.Ref]struct{}
	order []topology.Ref // oldest first
}

func newProofs() *proofs { return &proofs{known: make(map[topology.Ref]struct{})} }

func (p *proofs) reset() { *p = *newProofs() }

func (p *proofs) has(r topology.Ref) bool {
	_, ok := p.known[r]
	return ok
}

func (p *proofs) add(r topology.Ref) {
	if p.has(r) {
		return
	}
	if len(p.order) == membership.KeptDigests {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
	p.known[r] = struct{}{}
	p.order = append(p.order, r)
}

// prove returns a view whose version may be sent to a client that holds held,
// or the *api.Error that says why there is none. held.History may be zero: then
// that of the newest version is meant, for the digest tells them apart.
func (h *hub) prove(ctx context.Context, held topology.Ref) (*view, error) {
	v, err := h.caughtUp(ctx, held)
	if err != nil {
		return nil, err
	}
	head := v.head()
	if id := v.state.ID; !held.ClusterID.IsZero() && held.ClusterID != id {
		return nil, clusterError(h.name, held.ClusterID, id)
	}
	if held.Version.IsZero() || head.Version.Epoch > held.Version.Epoch {
		return v, nil
	}
	held.ClusterID = v.state.ID
	if head.Version.Compare(held.Version) < 0 {
		e := olderError(h.name, held, head)
		e.RetryAfter = time.Second
		return nil, e
	}
	held.History = head.History
	if err := h.descends(ctx, held); err != nil {
		return nil, err
	}
	return v, nil
}

// caughtUp returns the view, after a moment's wait if the client is ahead of it.
func (h *hub) caughtUp(ctx context.Context, held topology.Ref) (*view, error) {
	v, err := h.present(ctx)
	if err != nil {
		return nil, err
	}
	ahead := func(v *view) bool {
		return (held.ClusterID.IsZero() || held.ClusterID == v.state.ID) && v.head().Version.Compare(held.Version) < 0
	}
	if !ahead(v) {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	newer, err := h.wait(ctx, func(v *view) bool { return !ahead(v) })
	if errors.Is(err, context.DeadlineExceeded) {
		return v, nil
	}
	return newer, err
}

// descends asks the store whether held is in the chain of its head.
func (h *hub) descends(ctx context.Context, held topology.Ref) error {
	h.proving.Lock()
	defer h.proving.Unlock()
	h.mu.Lock()
	known, line := h.proved.has(held), h.line
	h.mu.Unlock()
	if known {
		return nil
	}
	ok, err := h.askStore(ctx, held)
	if err != nil {
		return fmt.Errorf("chain of %s: %w", h.name, inTime(err))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok || line != h.line {
		return forkedError(h.name, held, topology.Ref{})
	}
	h.proved.add(held)
	return nil
}

func clusterError(name string, presented, here topology.ClusterID) *api.Error {
	return api.Errorf(api.CodeCluster, "the address leads to another cluster of that name, or the cluster was built anew",
		"cluster %s has id %s here, the client follows %s", name, here, presented)
}

func olderError(name string, presented, here topology.Ref) *api.Error {
	return api.Errorf(api.CodeOlder, "another server may have it; if none has, the store went back",
		"cluster %s is at version %s here, the client holds %s", name, here, presented)
}

func forkedError(name string, presented, here topology.Ref) *api.Error {
	now := ""
	if !here.IsZero() {
		now = fmt.Sprintf(", which is at %s", here)
	}
	return api.Errorf(api.CodeForked, "a copy of the store was written to, the store was restored, or the client was away for more than "+fmt.Sprint(membership.KeptDigests)+" versions; start the client anew if this line is the right one",
		"version %s is not in the chain of cluster %s%s", presented, name, now)
}
