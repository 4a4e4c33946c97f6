package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/server/web"
)

// handler answers a request, or returns the error to answer with, before it has
// written anything.
type handler func(w http.ResponseWriter, r *http.Request) error

func (s *Server) newRoutes(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	const cluster = "/v1/clusters/{cluster}"
	for _, route := range []struct {
		pattern string
		name    string
		handler handler
	}{
		{"GET /v1/clusters", "clusters", s.getClusters},
		{"GET " + cluster + "/topology", "topology", s.getTopology},
		{"GET " + cluster + "/watch", "watch", s.watch},
		{"GET " + cluster + "/objects/{digest}", "objects", s.getObject},
		{"GET " + cluster + "/spec", "spec", s.getSpec},
		{"PUT " + cluster + "/spec", "spec", s.putSpec},
		{"POST " + cluster + "/nodes/{id}/{verb}", "nodes", s.postNode},
		{"GET " + cluster + "/transition", "transition", s.getTransition},
		{"POST " + cluster + "/transition/{verb}", "transition", s.postTransition},
		{"POST " + cluster + "/rollback", "rollback", s.postRollback},
		{"GET " + cluster + "/explain", "explain", s.getExplain},
		{"DELETE " + cluster + "", "delete", s.deleteCluster},
		{"POST " + cluster + "/epoch/bump", "epoch", s.postBump},
		{"POST " + cluster + "/freeze", "freeze", s.postFreeze},
		{"POST " + cluster + "/unfreeze", "freeze", s.postUnfreeze},
		{"GET " + cluster + "/history", "history", s.getHistory},
		{"GET " + cluster + "/movement/{version}", "movement", s.getMovement},
		{"GET " + cluster + "/route", "route", s.getRoute},
		{"GET " + cluster + "/health", "health", s.getOverlay},
		{"GET /healthz", "healthz", s.getHealth},
		{"GET /readyz", "readyz", s.getReady},
	} {
		mux.Handle(route.pattern, s.measured(route.name, route.handler))
	}
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET /{$}", web.Handler())
	mux.Handle("/", s.measured("none", s.noRoute(mux)))
	return mux
}

// handler is the whole API behind the guard.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if e := s.guard.check(r); e != nil {
			s.logger.Warn("request refused", "host", r.Host, "origin", r.Header.Get("Origin"), "remote", r.RemoteAddr, "reason", e.Message)
			writeError(w, r, e)
			return
		}
		s.routes.ServeHTTP(w, r)
	})
}

// noRoute answers what no other route takes.
func (s *Server) noRoute(mux *http.ServeMux) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			return api.Errorf(api.CodeMethod, "use "+strings.Join(allowed, " or "), "%s is not for %s", r.Method, r.URL.Path)
		}
		return api.Errorf(api.CodeNotFound, "see GET /v1/clusters", "there is nothing at %s", r.URL.Path)
	}
}

// measured answers with the error that h returns, counts and logs the request,
// and survives a panic of h.
func (s *Server) measured(name string, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			if p := recover(); p != nil {
				s.panicked(rec, r, p)
			}
			took := time.Since(start)
			s.metrics.requests.WithLabelValues(name, r.Method, strconv.Itoa(rec.status)).Inc()
			if name != "watch" {
				s.metrics.seconds.WithLabelValues(name).Observe(took.Seconds())
			}
			s.logger.Debug("request", "method", r.Method, "path", r.URL.Path, "status", rec.status, "took", took, "remote", r.RemoteAddr)
		}()
		if err := h(rec, r); err != nil {
			s.failed(rec, r, err)
		}
	})
}

func (s *Server) panicked(rec *recorder, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) //nolint:forbidigo // net/http's own way to cut a connection off
	}
	s.logger.Error("handler panicked", "panic", p, "path", r.URL.Path, "stack", string(debug.Stack()))
	if !rec.wrote {
		writeError(rec, r, api.Errorf(api.CodeInternal, "see the server's log", "the server failed"))
	}
}

func (s *Server) failed(rec *recorder, r *http.Request, err error) {
	e := api.FromError(err)
	switch {
	case r.Context().Err() != nil:
		rec.status = 499 // the client has gone; nobody reads an answer
		return
	case e.HTTPStatus() >= 500:
		s.logger.Warn("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if !rec.wrote {
		writeError(rec, r, e)
	}
}

// recorder keeps the status for the metrics. Unwrap lets
// http.ResponseController reach the connection.
type recorder struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *recorder) WriteHeader(status int) {
	w.status, w.wrote = status, true
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func writeError(w http.ResponseWriter, r *http.Request, e *api.Error) {
	retry := e.RetryAfter
	if e.HTTPStatus() == http.StatusServiceUnavailable && retry == 0 {
		retry = time.Second
	}
	if retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((retry+time.Second-1)/time.Second)))
	}
	_ = writeJSON(w, r, e.HTTPStatus(), api.ErrorBody{Error: e})
}

func writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeBody(w, r, status, api.TypeJSON, append(b, '\n'))
}

func writeBody(w http.ResponseWriter, r *http.Request, status int, mediaType string, b []byte) error {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b) // an error means that the client has gone
	}
	return nil
}
