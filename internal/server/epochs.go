package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// bumpTries bounds a bump that a leader's versions keep coming between.
const bumpTries = 20

// postBump raises the epoch on an operator's word.
func (s *Server) postBump(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() { s.metrics.editDone("epoch_bump", err) }()
	var body api.BumpRequest
	h, e, err := s.readVerb(w, r, &body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	for n := 0; ; n++ {
		answer, err := s.bump(ctx, h, body, e)
		if errors.Is(err, membership.ErrConflict) && n < bumpTries && pause(ctx, time.Duration(n+1)*time.Millisecond) == nil {
			continue
		}
		if err != nil {
			return inTime(err)
		}
		s.logger.Warn("epoch raised by an operator", "cluster", h.name, "from", answer.From, "version", answer.Version, "by", e.by, "why", e.why)
		return writeJSON(w, r, http.StatusOK, answer)
	}
}

func (s *Server) bump(ctx context.Context, h *hub, body api.BumpRequest, e editRequest) (api.EditResult, error) {
	st, err := h.store.Load(ctx)
	if err != nil {
		return api.EditResult{}, err
	}
	if !e.of.IsZero() && e.of != st.ID {
		return api.EditResult{}, clusterError(h.name, e.of, st.ID)
	}
	if e.expect != 0 && e.expect != st.Generation {
		return api.EditResult{}, api.Errorf(api.CodeConflict, "read it again and decide anew", "the declared state has generation %d, not %d", st.Generation, e.expect)
	}
	if len(st.Shown) == 0 && body.Above < st.Epoch && !body.Force {
		return api.EditResult{}, api.Errorf(api.CodeRefused, "if clients refuse its versions all the same, say so with --force, or name a newer epoch with --above",
			"nothing shows that the store of cluster %s went back: its head is %s", h.name, st.Position().Head)
	}
	b, err := st.Bump(h.recall(st), topology.Cause{By: e.by, Why: e.why}, time.Now(), body.Above)
	if err != nil {
		return api.EditResult{}, err
	}
	if err := h.store.Bump(ctx, nil, b); err != nil {
		return api.EditResult{}, err
	}
	answer := api.EditResult{Cluster: h.name, ClusterID: st.ID, Generation: st.Generation, Published: true, From: b.Expect.Version,
		Version: topology.Version{Epoch: b.Epoch}}
	if b.Next != nil {
		answer.Version, answer.Digest, answer.Movement = b.Next.Version(), b.Next.Digest(), &b.Movement
	}
	return answer, nil
}

// recall returns the version that this process kept if it is the newest that was
// shown, for the movement report of a bump.
func (h *hub) recall(st membership.State) *topology.Topology {
	own := h.kept.held()
	if own == nil || len(st.Shown) == 0 || own.Digest() != st.Shown[0].Ref.Digest {
		return nil
	}
	return own
}

// readVerb reads what a POST to a cluster carries.
func (s *Server) readVerb(w http.ResponseWriter, r *http.Request, body any) (h *hub, e editRequest, err error) {
	if e, err = s.readEdit(r); err != nil {
		return nil, e, err
	}
	b, err := readBody(w, r, api.MaxEditBody, api.TypeJSON)
	if err == nil {
		err = api.UnmarshalStrict(b, body)
	}
	if err != nil {
		return nil, e, err
	}
	h, err = s.hub(r)
	return h, e, err
}

// postFreeze holds back publication, or lets it go on.
func (s *Server) postFreeze(w http.ResponseWriter, r *http.Request) (err error) {
	return s.freeze(w, r, "freeze", func(e editRequest) *membership.Freeze {
		return &membership.Freeze{By: e.by, Why: e.why, At: time.Now().UnixMilli()}
	})
}

func (s *Server) postUnfreeze(w http.ResponseWriter, r *http.Request) (err error) {
	return s.freeze(w, r, "unfreeze", func(editRequest) *membership.Freeze { return nil })
}

func (s *Server) freeze(w http.ResponseWriter, r *http.Request, verb string, with func(editRequest) *membership.Freeze) (err error) {
	defer func() { s.metrics.editDone(verb, err) }()
	h, e, err := s.readVerb(w, r, &struct{}{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	st, err := h.store.Freeze(ctx, with(e))
	if err != nil {
		return inTime(err)
	}
	s.logger.Warn("cluster: "+verb, "cluster", h.name, "by", e.by, "why", e.why)
	answer := api.Frozen{Cluster: h.name, Version: st.Position().Head.Version, Pending: st.Generation - st.Applied}
	if st.Frozen != nil {
		answer.Frozen, answer.By, answer.Why = true, st.Frozen.By, st.Frozen.Why
	}
	return writeJSON(w, r, http.StatusOK, answer)
}
