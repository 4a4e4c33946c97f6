package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// postRollback declares spec and nodes of a kept version again.
func (s *Server) postRollback(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() { s.metrics.editDone("rollback", err) }()
	var body api.Rollback
	h, e, err := s.readVerb(w, r, &body)
	if err != nil {
		return err
	}
	defer s.edits.begin()()
	if body.Version.IsZero() {
		return api.Errorf(api.CodeInvalid, `send {"version": "1.3"}`, "rollback to no version")
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	old, err := h.store.Version(ctx, body.Version)
	if err != nil {
		return inTime(err)
	}
	var roll membership.Roll // of a store without registrations
	if roster, ok := h.store.(membership.Roster); ok {
		if roll, err = roster.Roll(ctx); err != nil {
			return inTime(err)
		}
	}
	edit := membership.Rollback(old, roll)
	edit.Expect, edit.Of, edit.By, edit.Why, edit.HeedFreeze = e.expect, e.of, e.by, e.why, true
	st, err := h.store.Declare(ctx, edit)
	if err != nil {
		return inTime(err)
	}
	return s.answerEdit(w, r, st, false, e, rollbackWarnings(old, st.Declared, roll)...)
}

// rollbackWarnings says where the nodes declared now do not own what they owned in
// old, because registered nodes are taken as they are now, and whose agents serve
// in vain.
func rollbackWarnings(old *topology.Topology, now topology.Declared, roll membership.Roll) (all []api.Warning) {
	was := old.Nodes()
	for _, n := range now.Nodes {
		i := slices.IndexFunc(was, func(o topology.Node) bool { return o.ID == n.ID })
		if i >= 0 && was[i].OwnerWeight() != n.OwnerWeight() {
			all = append(all, api.Warning{Code: "state_kept", Message: fmt.Sprintf("node %s was %s in version %s and is %s now; nodes that agents register stay what they are", n.ID, was[i].State, old.Version(), n.State),
				Hint: "shardd node drain takes its keys away; a lost node comes back with its agent"})
		}
	}
	for _, l := range roll.Live {
		if !slices.ContainsFunc(now.Nodes, func(n topology.Node) bool { return n.ID == l.ID }) {
			all = append(all, api.Warning{Code: "member_out", Message: fmt.Sprintf("node %s, which its agent has registered, is not in version %s and is no longer declared", l.ID, old.Version()),
				Hint: "the next start of its agent, or shardd node add, brings it back"})
		}
	}
	return all[:min(len(all), mostWarnings)]
}

// mostWarnings bounds the warnings of one kind of edit about single nodes.
const mostWarnings = 20

// deleteCluster removes a cluster, if its name is given twice and its id is
// right.
func (s *Server) deleteCluster(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() { s.metrics.editDone("delete", err) }()
	name, q := r.PathValue("cluster"), r.URL.Query()
	id, err := topology.ParseClusterID(q.Get("id"))
	if err != nil {
		return badRequest("?id= is in the header "+api.ClusterHeader+" of GET topology", "id: %v", err)
	}
	if q.Get("confirm") != name {
		return api.Errorf(api.CodeRefused, "say ?confirm="+name+" (shardd cluster delete --yes "+name+")", "cluster %s is deleted only if its name is given once more", name)
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	if err := s.cfg.Directory.Delete(ctx, name, id); err != nil {
		return inTime(err)
	}
	s.logger.Warn("cluster deleted", "cluster", name, "id", id, "by", q.Get("by"))
	return writeJSON(w, r, http.StatusOK, api.ClusterEntry{Name: name, ClusterID: id})
}

// getExplain says where a key belonged at a version, and since when.
func (s *Server) getExplain(w http.ResponseWriter, r *http.Request) error {
	key, err := routeKey(r)
	if err != nil {
		return err
	}
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	versions, err := h.store.Versions(ctx)
	if err != nil {
		return inTime(err)
	}
	if text := r.URL.Query().Get("at"); text != "" {
		at, err := parseVersion(text)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(versions, func(v membership.VersionInfo) bool { return v.Version == at })
		if i < 0 {
			return fmt.Errorf("%w: %s", membership.ErrNoVersion, at)
		}
		versions = versions[:i+1]
	}
	if len(versions) == 0 {
		return noVersionYet(h.name)
	}
	answer, err := explain(ctx, h.store, versions, key)
	if err != nil {
		return inTime(err)
	}
	return writeJSON(w, r, http.StatusOK, answer)
}

// explain looks back from the last of versions until the owner is another one.
func explain(ctx context.Context, store membership.Reader, versions []membership.VersionInfo, key []byte) (a api.Explain, err error) {
	var owner string
	var later membership.VersionInfo
	for i, v := range slices.Backward(versions) {
		if a.Looked == api.ExplainDepth {
			break
		}
		t, err := store.Version(ctx, v.Version)
		if errors.Is(err, membership.ErrNoVersion) && a.Looked > 0 {
			break // collected meanwhile
		}
		if err != nil {
			return a, err
		}
		table, err := placement.New(t)
		if err != nil {
			return a, fmt.Errorf("version %s: %w", v.Version, err)
		}
		now := ownerOf(table, key)
		a.Looked++
		switch {
		case i == len(versions)-1:
			a.Route, a.Cause, owner = routeAnswer(table, key, 0), v.Cause, now
		case now != owner:
			a.Moved = &api.OwnerChange{Version: later.Version, From: now, To: owner, Cause: later.Cause}
			return a, nil
		}
		later, a.Since = v, v.Version
	}
	return a, nil
}

func ownerOf(table *placement.Table, key []byte) string {
	nodes := table.AppendNodes(nil, key, 1)
	if len(nodes) == 0 {
		return ""
	}
	return table.Topology().Node(nodes[0]).ID
}
