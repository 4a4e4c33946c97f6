package loadreport

import (
	"net/http"
	"strconv"
)

// The headers of HTTP.
const (
	// Header carries a report in an answer.
	Header = "Endpoint-Load-Metrics"
	// HeaderBin is read as well: base64 of the binary form.
	HeaderBin = "Endpoint-Load-Metrics-Bin"
	// CostHeader says in a request what it costs, a whole number; without it, 1.
	CostHeader = "Shardd-Cost"
)

// Middleware counts the requests of next and puts a report into the header of each
// answer, as of the moment when the header is written. An answer of 500 and above, and
// a panic, count as errors.
func (s *Server) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cost, err := strconv.ParseInt(r.Header.Get(CostHeader), 10, 64)
		if err != nil {
			cost = 1
		}
		rw := &writer{ResponseWriter: w, request: s.Begin(cost)}
		finished := false
		defer func() {
			if finished {
				rw.header(http.StatusOK) // a handler that wrote nothing
			}
			rw.request.Done(!finished || rw.status >= http.StatusInternalServerError)
		}()
		next.ServeHTTP(rw, r)
		finished = true
	})
}

// writer puts the report into the header.
type writer struct {
	http.ResponseWriter
	request Request
	status  int // 0 = not written yet
}

// header sets the report once, and notes the status.
func (w *writer) header(status int) {
	if w.status != 0 {
		return
	}
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		return // informational; the real one comes
	}
	w.status = status
	w.ResponseWriter.Header().Set(Header, w.request.Report().Text())
}

// WriteHeader is http.ResponseWriter.WriteHeader.
func (w *writer) WriteHeader(status int) {
	w.header(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write is http.ResponseWriter.Write.
func (w *writer) Write(b []byte) (int, error) {
	w.header(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Flush is http.Flusher.Flush; it does nothing if the server cannot.
func (w *writer) Flush() {
	w.header(http.StatusOK)
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ProbeHandler answers probes: 204 with a report in the header, and is not counted.
// Mount it outside of Middleware.
func (s *Server) ProbeHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(Header, s.Report().Text())
		w.WriteHeader(http.StatusNoContent)
	})
}

// FromHeader returns the report in the header of an answer. ok is false if there is
// none or it cannot be read.
func FromHeader(h http.Header) (r Report, ok bool) {
	if v := h.Get(Header); v != "" {
		r, err := Parse(v)
		return r, err == nil
	}
	if v := h.Get(HeaderBin); v != "" {
		r, err := parseBase64(v)
		return r, err == nil
	}
	return Report{}, false
}
