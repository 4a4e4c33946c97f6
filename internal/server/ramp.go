package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/shardd/shardd/internal/api"
)

// getTransition says how a change of owners that is made in steps stands.
func (s *Server) getTransition(w http.ResponseWriter, r *http.Request) error {
	_, st, err := s.load(r)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, api.RampOf(st))
}

// postTransition makes steps, turns them round, or makes all that are left.
func (s *Server) postTransition(w http.ResponseWriter, r *http.Request) (err error) {
	verb, label := api.RampVerb(r.PathValue("verb")), "transition_unknown"
	if slices.Contains(api.RampVerbs(), verb) {
		label = "transition_" + string(verb)
	}
	defer func() { s.metrics.editDone(label, err) }()
	var body api.RampEdit
	h, e, err := s.readVerb(w, r, &body)
	if err != nil {
		return err
	}
	edit, err := body.Edit(verb)
	if err != nil {
		return err
	}
	edit.Expect, edit.Of, edit.By, edit.Why, edit.HeedFreeze = e.expect, e.of, e.by, e.why, true
	defer s.edits.begin()()
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	st, err := h.store.Declare(ctx, edit)
	if err != nil {
		return inTime(err)
	}
	return s.answerEdit(w, r, st, false, e)
}
