package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// watch streams versions: at once the newest, unless the client holds it, then
// each change, with heartbeats between.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) error {
	held, err := presented(r)
	if err != nil {
		return err
	}
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	if s.open.Add(1) > int64(s.cfg.MaxWatches) {
		s.open.Add(-1)
		return api.Errorf(api.CodeStopping, "ask another server", "%d watches are open, which is all this server takes", s.cfg.MaxWatches)
	}
	defer s.open.Add(-1)
	v, err := h.prove(r.Context(), held)
	if err != nil {
		code := api.FromError(err).Code
		s.metrics.refused.WithLabelValues(string(code)).Inc()
		if code == api.CodeOlder || code == api.CodeForked {
			h.presentClient(r.Context(), held, r.RemoteAddr)
		}
		return err
	}
	s.metrics.watches.Inc()
	defer s.metrics.watches.Dec()
	w.Header().Set("Content-Type", api.TypeLines)
	w.Header().Set("Cache-Control", "no-store")
	setTags(w, v.state.ID, v.etag())
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	st := &stream{server: s, hub: h, out: w, control: http.NewResponseController(w), sent: held.Digest, version: held.Version, line: v.line,
		deltas: api.Deltas(r.URL.Query().Get("deltas"))}
	st.run(r)
	return nil
}

// presented reads what the client says it holds.
func presented(r *http.Request) (topology.Ref, error) {
	q := r.URL.Query()
	var held topology.Ref
	for _, p := range []struct {
		name string
		into interface{ UnmarshalText([]byte) error }
	}{{"after", &held.Version}, {"digest", &held.Digest}, {"id", &held.ClusterID}} {
		if text := q.Get(p.name); text != "" {
			if err := p.into.UnmarshalText([]byte(text)); err != nil {
				return held, badRequest("", "%s: %v", p.name, err)
			}
		}
	}
	if held.Version.IsZero() != held.Digest.IsZero() {
		return held, badRequest("?after=2.45&digest=...", "after and digest go together: the digest proves what the version is")
	}
	return held, nil
}

// stream is one open watch.
type stream struct {
	server  *Server
	hub     *hub
	out     http.ResponseWriter
	control *http.ResponseController
	sent    topology.Digest  // what the client has, from here or from before
	version topology.Version // of sent
	line    uint64
	deltas  api.Deltas          // what the client takes
	health  *membership.Overlay // what the client was told last
}

// run sends until the client goes, the server stops, or there is nothing left
// that the client may be sent.
func (st *stream) run(r *http.Request) {
	beat := time.NewTicker(st.server.cfg.Heartbeat)
	defer beat.Stop()
	for first := true; ; first = false {
		v, changed, err := st.hub.look()
		switch {
		case err != nil:
			st.end(api.FromError(err))
			return
		case v.line != st.line:
			st.end(v.lineErr)
			return
		}
		err = st.bring(v, first)
		if err == nil {
			err = st.tellHealth(v)
		}
		if err != nil {
			st.server.logger.Debug("watch ended", "cluster", st.hub.name, "remote", r.RemoteAddr, "error", err)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-st.server.running.Done():
			st.end(api.FromError(errStopping()))
			return
		case <-changed:
			continue
		case <-beat.C:
		}
		if err := st.heartbeat(); err != nil {
			return
		}
	}
}

// bring sends v's version if the client does not have it, else, at first, a
// heartbeat: it confirms to the client that it is up to date.
func (st *stream) bring(v *view, first bool) error {
	head := v.head()
	if head.Digest == st.sent {
		if first {
			return st.heartbeat()
		}
		return nil
	}
	kind, line, err := st.compose(v, first)
	if err == nil {
		err = st.write(kind, line)
	}
	if err == nil {
		st.sent, st.version = head.Digest, head.Version
	}
	return err
}

// tellHealth sends what the leader says of the nodes' health, if that is news, or
// that nobody says anything any more: heartbeats are no renewal then.
func (st *stream) tellHealth(v *view) error {
	now := v.state.Overlay
	if now.Equal(st.health) {
		return nil
	}
	head := v.head()
	m := api.Message{Type: api.MessageHealthUnknown, ClusterID: v.state.ID, Version: head.Version, Digest: head.Digest}
	if now != nil {
		m.Type, m.Bad = api.MessageHealth, now.Bad
	}
	st.health = now
	return st.send(m)
}

// compose returns the message that brings v's version: a delta if the client
// takes one from what it holds, else the whole version.
func (st *stream) compose(v *view, first bool) (api.MessageType, []byte, error) {
	if v.state.Head != nil && !st.sent.IsZero() && (st.deltas == api.DeltasAll || st.deltas == api.DeltasNext && !first) {
		if line := st.hub.delta(v, st.sent, st.version); line != nil {
			return api.MessageDelta, line, nil
		}
	}
	line, err := v.message()
	return api.MessageFull, line, err
}

func (st *stream) heartbeat() error {
	v, _, err := st.hub.look()
	if err != nil || v == nil {
		return nil // the next turn ends the watch
	}
	head := v.head()
	return st.send(api.Message{Type: api.MessageHeartbeat, ClusterID: v.state.ID, Version: head.Version, Digest: head.Digest,
		IntervalMS: st.server.cfg.Heartbeat.Milliseconds()})
}

func (st *stream) end(e *api.Error) {
	st.server.metrics.refused.WithLabelValues(string(e.Code)).Inc()
	_ = st.send(api.Message{Type: api.MessageEnd, Error: e})
}

func (st *stream) send(m api.Message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return st.write(m.Type, append(line, '\n'))
}

// write sends one line within the deadline.
func (st *stream) write(kind api.MessageType, line []byte) error {
	_ = st.control.SetWriteDeadline(time.Now().Add(st.server.cfg.WriteTimeout))
	_, err := st.out.Write(line)
	if err == nil {
		err = st.control.Flush()
	}
	if err != nil {
		st.server.metrics.dropped.Inc()
		return err
	}
	st.server.metrics.messages.WithLabelValues(string(kind)).Inc()
	return nil
}
