package server

import (
	"context"
	"fmt"
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
	if _, err := s.store.list(r.Context()); err != nil {
		return api.Errorf(api.CodeStore, "clients are served from memory; edits are not possible", "the store does not answer: %v", err)
	}
	answer := api.Ready{Status: "ready"}
	for _, h := range s.clusters.list() {
		if waiting := h.status().Waiting; waiting > 0 {
			answer.Notes = append(answer.Notes, fmt.Sprintf("cluster %s: owners change in steps, and %d members wait for the end of that; see shardd ramp", h.name, waiting))
		}
		if held := h.status().Held; held > 0 {
			answer.Notes = append(answer.Notes, fmt.Sprintf("cluster %s: %d members have lost their leases together and are held as down; remove those that will not come back", h.name, held))
		}
		if v, _, err := h.look(); err == nil && v != nil {
			if e := v.unready(h.name); e != nil {
				return e
			}
		}
	}
	return writeJSON(w, r, http.StatusOK, answer)
}

// lister asks the store for the names of its clusters. Requests that come while
// it asks, or soon after, share the answer, so that many of them cost the store
// one question.
type lister struct {
	directory membership.Directory
	timeout   time.Duration
	every     time.Duration // how long an answer is shared

	mu    sync.Mutex
	at    time.Time
	names []string
	err   error
}

func (l *lister) list(ctx context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && time.Since(l.at) < l.every {
		return l.names, l.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
	defer cancel()
	l.names, l.err = l.directory.List(ctx)
	l.err = inTime(l.err)
	l.at = time.Now()
	return l.names, l.err
}

// getOverlay answers what the leader says of the nodes' health, as this server
// knows it.
func (s *Server) getOverlay(w http.ResponseWriter, r *http.Request) error {
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	v, err := h.present(r.Context())
	if err != nil {
		return err
	}
	answer := api.Overlay{Cluster: h.name, ClusterID: v.state.ID, Bad: []string{}}
	if o := v.state.Overlay; o != nil {
		answer.Known, answer.Bad = true, append(answer.Bad, o.Bad...)
	}
	return writeJSON(w, r, http.StatusOK, answer)
}
