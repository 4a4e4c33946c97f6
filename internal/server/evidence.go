package server

import (
	"context"
	"net"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// presentOwn shows the store the newest version that this process has kept, if
// st, a reading of the store, does not plainly continue it. It reports whether
// the store went back behind that.
func (h *hub) presentOwn(ctx context.Context, st membership.State) (bool, error) {
	if err := h.kept.open(st.ID); err != nil {
		h.logger.Error("kept version cannot be used", "error", err)
	}
	own := h.kept.held()
	if own == nil || own.ClusterID() != st.ID || own.Version().Epoch < st.Epoch {
		return false, nil
	}
	if st.Head != nil && (own.Digest() == st.Head.Digest() || own.Digest() == st.Head.Parent()) {
		return false, nil
	}
	return h.show(ctx, membership.Shown{Ref: own.Ref(), By: "server " + h.id + ", which served it,", Trusted: true})
}

// presentClient shows the store what a client holds that cannot be served. The
// client is answered whatever comes of it. Unauthenticated as it is, its word
// stops publication but raises no epoch.
func (h *hub) presentClient(ctx context.Context, held topology.Ref, addr string) {
	if held.ClusterID.IsZero() || held.Digest.IsZero() {
		return
	}
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	h.mu.Lock()
	now := time.Now()
	due := now.Sub(h.presented[held]) >= time.Second // so that many clients cost the store one question
	if len(h.presented) >= membership.KeptDigests {
		clear(h.presented)
	}
	h.presented[held] = now
	h.mu.Unlock()
	if !due {
		return
	}
	if _, err := h.show(ctx, membership.Shown{Ref: held, By: "client " + addr}); err != nil {
		h.logger.Debug("a client's version could not be presented", "version", held, "error", err)
	}
}

func (h *hub) show(ctx context.Context, s membership.Shown) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	s.At = time.Now().UnixMilli()
	evidence, err := h.store.Show(ctx, s)
	if evidence {
		h.logger.Error("the store went back: somebody holds a version that its head neither is nor descends from", "version", s.Ref, "shown-by", s.By, "trusted", s.Trusted)
	}
	return evidence, inTime(err)
}

// keep makes the head of st what this process has kept, before it is sent to
// anybody. A disk that fails is told and not waited for: clients present what
// they hold, too.
func (h *hub) keep(st membership.State) {
	if st.Head == nil || len(st.Shown) > 0 {
		return
	}
	if err := h.kept.keep(st.Head); err != nil {
		h.logger.Error("version is served though it could not be kept", "version", st.Head.Version(), "error", err)
	}
}

// unready says why a cluster needs its operator, or returns nil.
func (v *view) unready(name string) *api.Error {
	if err := v.state.Err(v.head()); err != nil {
		return api.Errorf(api.CodeWentBack, "shardd epoch bump, after a look at what was restored", "cluster %s: %v", name, err)
	}
	if v.sore != nil {
		return api.Errorf(v.sore.Code, "look at the store; restart this process if what it has now is right", "cluster %s: %s", name, v.sore.Message)
	}
	return nil
}
