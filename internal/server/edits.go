package server

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// bodyTimeout bounds how long a client may take to send the body of an edit.
const bodyTimeout = 30 * time.Second

// editRequest is what every edit carries besides its body.
type editRequest struct {
	expect uint64             // generation of If-Match; 0 = any
	of     topology.ClusterID // of If-Match; zero = any
	create bool               // If-None-Match: * : only if the cluster is not there
	wait   time.Duration
	by     string
	why    string
}

func (s *Server) readEdit(r *http.Request) (editRequest, error) {
	q := r.URL.Query()
	e := editRequest{wait: s.cfg.EditWait, by: q.Get("by"), why: q.Get("why")}
	if text := r.Header.Get("If-Match"); text != "" {
		tag, err := api.ParseETag(text)
		if err != nil {
			return e, badRequest("send the ETag of GET topology or GET spec, or no If-Match", "If-Match: %v", err)
		}
		e.expect, e.of = tag.Generation, tag.Cluster
	}
	if text := r.Header.Get("If-None-Match"); text != "" {
		if text != "*" || e.expect != 0 {
			return e, badRequest("If-None-Match: * creates a cluster and refuses one that is there", "If-None-Match: want *, and no If-Match beside it")
		}
		e.create = true
	}
	if text := q.Get("wait"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return e, badRequest("?wait=5s, or 0s", "wait=%q: want a duration from 0 on", text)
		}
		e.wait = min(d, s.cfg.MaxEditWait)
	}
	return e, nil
}

// readBody reads the body of an edit. The media type is required, because a
// browser cannot send it to another site without asking first.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, types ...string) ([]byte, error) {
	given, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		given = r.Header.Get("Content-Type")
	}
	for _, t := range types {
		if t == given {
			// A deadline that is left would end the request while it waits
			// for its version.
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
			defer func() { _ = control.SetReadDeadline(time.Time{}) }()
			return api.ReadBody(r.Body, limit)
		}
	}
	return nil, api.Errorf(api.CodeMediaType, "send the header Content-Type: "+types[0], "content type %q: want %v", given, types)
}

func (s *Server) putSpec(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() { s.metrics.editDone("spec", err) }()
	e, err := s.readEdit(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r, api.MaxSpecBody, api.TypeJSON, "application/yaml")
	if err != nil {
		return err
	}
	parse := clusterfile.Parse
	if r.URL.Query().Get("empty") == "true" {
		parse = clusterfile.ParseEmpty
	}
	d, err := parse("body", body)
	if err != nil {
		return &api.Error{Code: api.CodeInvalid, Message: err.Error(), Hint: "nothing was changed; correct it and send it again"}
	}
	if name := r.PathValue("cluster"); d.Cluster != name {
		return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("cluster: the body declares %q, the path names %q", d.Cluster, name),
			Hint: "nothing was changed; make them the same"}
	}
	defer s.edits.begin()()
	st, created, err := s.declareAll(r.Context(), d, e)
	if err != nil {
		return err
	}
	return s.answerEdit(w, r, st, created, e)
}

// declareAll declares all of d, and creates the cluster if it is not there.
// Another process may create or delete it at the same moment: each of the two
// calls tells when the other one is right.
func (s *Server) declareAll(ctx context.Context, d topology.Declared, e editRequest) (st membership.State, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	edit := membership.ReplaceAll(d)
	edit.Expect, edit.Of, edit.By, edit.Why, edit.HeedFreeze = e.expect, e.of, e.by, e.why, true
	for range 3 {
		if !e.create {
			st, err = s.cfg.Directory.Open(d.Cluster).Declare(ctx, edit)
			if !errors.Is(err, membership.ErrNoCluster) || e.expect != 0 {
				return st, false, inTime(err)
			}
		}
		st, err = s.cfg.Directory.Create(ctx, d, e.by, e.why)
		if e.create || !errors.Is(err, membership.ErrExists) {
			return st, err == nil, inTime(err)
		}
	}
	return st, false, inTime(err)
}

func (s *Server) postNode(w http.ResponseWriter, r *http.Request) (err error) {
	verb := api.Verb(r.PathValue("verb"))
	edit, label, err := s.nodeEdit(w, r, verb)
	defer func() { s.metrics.editDone(label, err) }()
	if err != nil {
		return err
	}
	e, err := s.readEdit(r)
	if err != nil {
		return err
	}
	if e.create {
		return badRequest("", "If-None-Match is for PUT spec")
	}
	edit.Expect, edit.Of, edit.By, edit.Why, edit.HeedFreeze = e.expect, e.of, e.by, e.why, true
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	defer s.edits.begin()()
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	st, err := h.store.Declare(ctx, edit)
	if err != nil {
		return inTime(err)
	}
	return s.answerEdit(w, r, st, false, e)
}

// nodeEdit reads the body of POST nodes/{id}/{verb} and returns the edit, and
// the verb as the metrics name it.
func (s *Server) nodeEdit(w http.ResponseWriter, r *http.Request, verb api.Verb) (edit membership.Edit, label string, err error) {
	id := r.PathValue("id")
	switch verb {
	case api.VerbAdd, api.VerbRemove, api.VerbWeight, api.VerbDrain, api.VerbUndrain, api.VerbReplace, api.VerbForget:
		label = "node_" + string(verb)
	default:
		return edit, "node_unknown", &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no verb %q for nodes", verb),
			Hint: "use add, remove, weight, drain, undrain, replace or forget"}
	}
	if err := topology.ValidateNodeID(id); err != nil {
		return edit, label, &api.Error{Code: api.CodeInvalid, Message: err.Error(), Hint: "nothing was changed"}
	}
	var body api.NodeEdit
	b, err := readBody(w, r, api.MaxEditBody, api.TypeJSON)
	if err == nil {
		err = api.UnmarshalStrict(b, &body)
	}
	if err != nil {
		return edit, label, err
	}
	edit, err = body.Edit(id, verb)
	return edit, label, err
}

// answerEdit waits for the version that contains the edit and tells about it.
func (s *Server) answerEdit(w http.ResponseWriter, r *http.Request, st membership.State, created bool, e editRequest, more ...api.Warning) error {
	accepted := time.Now()
	answer := api.EditResult{Cluster: st.Declared.Cluster, ClusterID: st.ID, Created: created, Generation: st.Generation, Warnings: more}
	if st.Head != nil {
		answer.From = st.Head.Version()
		answer.Version, answer.Digest = answer.From, st.Head.Digest()
	}
	s.logger.Info("edit accepted", "cluster", answer.Cluster, "generation", st.Generation, "by", e.by, "why", e.why, "path", r.URL.Path, "method", r.Method)
	status := http.StatusAccepted
	switch v := s.published(r.Context(), st, e.wait, &answer); {
	case v == nil:
	case v.state.Applied < st.Generation: // the steps turn back, and the last one answers it
		answer.Version, answer.Digest = v.head().Version, v.head().Digest
		ramp := api.RampOf(v.state)
		answer.Ramp = &ramp
	default:
		status = http.StatusOK
		s.metrics.waited.Observe(time.Since(accepted).Seconds())
		s.describe(r.Context(), v, &answer)
	}
	setTags(w, st.ID, answer.ETag())
	return writeJSON(w, r, status, answer)
}

// published waits for the view that contains st's generation, or whose steps turn
// back because it says so. It returns nil,
// and a warning in answer, if there is none in time: the edit stands, so that is
// no error.
func (s *Server) published(ctx context.Context, st membership.State, wait time.Duration, answer *api.EditResult) *view {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	stop := context.AfterFunc(s.waiting, cancel)
	defer stop()
	h := s.clusters.ensure(answer.Cluster)
	if h == nil { // the server is stopping
		answer.Warnings = append(answer.Warnings, unpublished(st.Generation, wait, membership.Status{}))
		return nil
	}
	v, err := h.wait(ctx, func(v *view) bool {
		return v.state.ID == st.ID && v.state.Head != nil && (v.state.Applied >= st.Generation || v.state.Generation >= st.Generation && v.state.Turning())
	})
	if err != nil {
		answer.Warnings = append(answer.Warnings, unpublished(st.Generation, wait, h.status()))
		return nil
	}
	return v
}

// describe fills in what the version brought. What cannot be read is left out
// with a warning.
func (s *Server) describe(ctx context.Context, v *view, answer *api.EditResult) {
	head := v.state.Head
	answer.Published, answer.Version, answer.Digest = true, head.Version(), head.Digest()
	if answer.Version != answer.From {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
		defer cancel()
		report, err := s.cfg.Directory.Open(answer.Cluster).Movement(ctx, answer.Version)
		if err == nil {
			answer.Movement = &report
		} else {
			answer.Warnings = append(answer.Warnings, s.unreadable("movement", answer, err))
		}
	}
	if head.Transition() != nil {
		ramp := api.RampOf(v.state)
		answer.Ramp = &ramp
	}
	table, err := v.table()
	if err != nil {
		answer.Warnings = append(answer.Warnings, s.unreadable("mapping", answer, err))
		return
	}
	answer.Peak = table.Peak()
	answer.Warnings = append(answer.Warnings, warnings(table)...)
}

func (s *Server) unreadable(what string, answer *api.EditResult, err error) api.Warning {
	s.logger.Warn("cannot describe a new version", "cluster", answer.Cluster, "version", answer.Version, "missing", what, "error", err)
	return api.Warning{Code: "unreadable", Message: fmt.Sprintf("version %s is published, but its %s cannot be read: %v", answer.Version, what, err)}
}
