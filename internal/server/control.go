package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
)

// control runs the cluster's controller until ctx ends. A cluster that is gone
// may come back under the same name: then another controller serves it.
func (h *hub) control(ctx context.Context, elector membership.Elector, id string, admission membership.AdmissionConfig) {
	roster, _ := h.store.(membership.Roster) // else nodes come by edits only
	// Before it leads, this process tells the store what it has served. A store
	// that cannot be read is the controller's to tell about.
	first, cancel := context.WithTimeout(ctx, h.timeout)
	_, _ = h.wait(first, func(*view) bool { return true })
	cancel()
	for {
		c, err := membership.NewController(membership.ControllerConfig{Store: h.store, Elector: elector, Cluster: h.name, ID: id, Roster: roster, Admission: admission,
			Epochs: h.store, Recall: h.kept.held, Logger: h.logger})
		if err == nil {
			h.mu.Lock()
			h.ruler = c
			h.mu.Unlock()
			err = c.Run(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, membership.ErrNoCluster) {
			h.logger.Debug("cluster is gone, its controller ended")
		} else {
			h.logger.Error("controller ended; starting another one", "error", err)
		}
		if pause(ctx, time.Second) != nil {
			return
		}
	}
}

// status returns what the controller does; zero if there is none.
func (h *hub) status() membership.Status {
	h.mu.Lock()
	c := h.ruler
	h.mu.Unlock()
	if c == nil {
		return membership.Status{}
	}
	return c.Status()
}

// unpublished says that no version contained an edit in time, and why, if st is
// of the controller that should have published it.
func unpublished(generation uint64, waited time.Duration, st membership.Status) api.Warning {
	w := api.Warning{Code: "not_published",
		Message: fmt.Sprintf("the edit is accepted as generation %d, but no version contained it within %s", generation, waited),
		Hint:    "it follows as soon as a leader can publish it; GET topology shows it"}
	if st.Leading && st.Err != nil {
		w.Message += ": " + st.Err.Error()
		w.Hint = "correct the declared state; the newest version stays meanwhile"
	}
	return w
}
