package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
)

// getHealth answers 200 as long as the process can answer at all.
func (s *Server) getHealth(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, http.StatusOK, map[string]string{"status": "ok"})
}

// getReady answers 200 if this process should get new clients: it has read its
// clusters, reaches the store, and is not about to stop. Clients that are here
// already stay whatever it says: they are served from memory.
func (s *Server) getReady(w http.ResponseWriter, r *http.Request) error {
	select {
	case <-s.running.Done():
		return errStopping()
	case <-s.clusters.read:
	default:
		return api.Errorf(api.CodeStore, "wait", "the list of clusters has not been read yet")
	}
	if err := s.store.check(r.Context()); err != nil {
		return api.Errorf(api.CodeStore, "clients are served from memory; edits are not possible", "the store does not answer: %v", err)
	}
	for _, h := range s.clusters.list() {
		if v, _, err := h.look(); err == nil && v != nil && v.line > 0 {
			return api.Errorf(v.lineErr.Code, "look at the store; restart this process if what it has now is right",
				"cluster %s: %s", h.name, v.lineErr.Message)
		}
	}
	return writeJSON(w, r, http.StatusOK, map[string]string{"status": "ready"})
}

// Bounds of the store's probe.
const (
	probeTimeout = time.Second
	probeEvery   = time.Second // more requests than this share one answer
)

// probe asks the store for a sign of life, at most once in probeEvery.
type probe struct {
	directory membership.Directory

	mu   sync.Mutex
	at   time.Time
	last error
}

func (p *probe) check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() && time.Since(p.at) < probeEvery {
		return p.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	_, p.last = p.directory.List(ctx)
	p.at = time.Now()
	return p.last
}
