package httplb_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httplb"
)

// endless answers with a line, and does not end.
var endless = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "a line\n")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
})

// TestGrace: an answer of a node that left goes on for the grace and is then cut; Close
// lets it go on.
func TestGrace(t *testing.T) {
	f := func(grace time.Duration, end func(leave func(), tr *httplb.Transport), cut bool) {
		t.Helper()
		b := newBackend(t, "b0", endless)
		p := plane(t, []*backend{b, newBackend(t, "b1", nil)})
		tr := httplb.New(p.Client(), httplb.Config{Key: httplb.KeyHeader("X-Key"), Grace: grace})
		defer tr.Close()
		key := ""
		for i := 0; p.Owner(key) != "b0"; i++ {
			key = fmt.Sprint(i)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://svc/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Key", key)
		resp, err := tr.RoundTrip(req) //nolint:bodyclose // closed below
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = io.Copy(io.Discard, resp.Body) }()
		end(func() { p.Remove("b0") }, tr)
		select {
		case <-ended:
			if !cut {
				t.Error("it was cut")
			}
		case <-time.After(300 * time.Millisecond):
			if cut {
				t.Error("it goes on")
			}
		}
		resp.Body.Close()
		<-ended
	}
	leave := func(leave func(), _ *httplb.Transport) { leave() }
	f(10*time.Millisecond, leave, true)
	f(time.Minute, leave, false)
	f(10*time.Millisecond, func(_ func(), tr *httplb.Transport) { tr.Close() }, false)
}

// TestTriesAny: a request without a key that could not be sent to a node goes to another
// one, whatever the policy would say the second time.
func TestTriesAny(t *testing.T) {
	all := backends(t, 2)
	p := plane(t, all)
	all[0].Close()
	c := p.Client(sdk.WithBalance(sdk.Balance{Policy: func(s *balance.Set) (balance.Picker, error) { return balance.NewRandom(s), nil }}))
	h := transport(t, c, httplb.Config{Tries: 2})
	for i := range 40 {
		if got, err := post(t, h, "", "x"); err != nil || !strings.HasPrefix(got, "b1 ") {
			t.Fatal(i, got, err)
		}
	}
	p.Remove("b1")
	if _, err := post(t, h, "", "x"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("where no other is left: %v", err)
	}
	for _, n := range c.LoadStats().Nodes {
		if n.InFlight != 0 {
			t.Errorf("%+v", n)
		}
	}
}

// TestTriesLoad: a request that went on to the next node is in its load.
func TestTriesLoad(t *testing.T) {
	all := []*backend{newBackend(t, "b0", nil), newBackend(t, "b1", endless)}
	p := plane(t, all)
	all[0].Close()
	c := p.Client()
	h := transport(t, c, httplb.Config{Key: httplb.KeyHeader("X-Key"), Tries: 2})
	key := ""
	for i := 0; p.Owner(key) != "b0"; i++ {
		key = fmt.Sprint(i)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://svc/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Key", key)
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	load := map[string]int64{}
	for _, n := range c.LoadStats().Nodes {
		load[n.ID] = n.InFlight
	}
	if load["b0"] != 0 || load["b1"] != 1 {
		t.Errorf("in flight: %v", load)
	}
	resp.Body.Close()
}
