package loadreport_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/loadreport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that stands unless it is moved.
type clock struct{ at time.Time }

func newClock() *clock                { return &clock{time.Unix(1000, 0)} }
func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }
func none() (time.Duration, float64)  { return 0, 1 }
func server(c *clock) *loadreport.Server {
	return loadreport.New(loadreport.Config{Now: c.now, CPU: none})
}
func report(inFlight int64) loadreport.Report {
	return loadreport.Report{InFlight: inFlight, HasInFlight: true}
}

// TestCounts: cost in flight, service and expected latency of one request after another.
func TestCounts(t *testing.T) {
	c := newClock()
	s := server(c)
	a := s.Begin(1)
	c.pass(time.Second)
	b := s.Begin(10)
	if diff := cmp.Diff(report(11), s.Report()); diff != "" {
		t.Error(diff)
	}
	c.pass(time.Second)
	want := report(10)
	want.Service = 2 * time.Second
	if diff := cmp.Diff(want, a.Report()); diff != "" {
		t.Error(diff)
	}
	b.Done(false)
	a.Done(true)
	loadreport.Request{}.Done(true)
	got := s.Report()
	if got.InFlight != 0 || got.Latency != 2*time.Second {
		t.Errorf("%+v", got)
	}
	c.pass(time.Second)
	if got = s.Report(); math.Abs(got.QPS-2.0/3) > 1e-9 || math.Abs(got.EPS-1.0/3) > 1e-9 {
		t.Errorf("in the first seconds: %+v", got)
	}
	c.pass(time.Hour)
	if got = s.Report(); got.QPS != 0 || got.EPS != 0 {
		t.Errorf("after an hour: %+v", got)
	}
}

// TestRates: requests a second over the last ten, whatever came before.
func TestRates(t *testing.T) {
	c := newClock()
	s := server(c)
	for range 100 {
		for i := range 20 {
			s.Begin(1).Done(i%4 == 0)
			c.pass(50 * time.Millisecond)
		}
	}
	if r := s.Report(); math.Abs(r.QPS-20) > 1e-9 || math.Abs(r.EPS-5) > 1e-9 {
		t.Errorf("%+v", r)
	}
}

// TestCPU: the use is that of the last second or more.
func TestCPU(t *testing.T) {
	c := newClock()
	var used time.Duration
	s := loadreport.New(loadreport.Config{Now: c.now, CPU: func() (time.Duration, float64) { return used, 4 }})
	f := func(pass, use time.Duration, want float64) {
		t.Helper()
		c.pass(pass)
		used += use
		if got := s.Report().CPU; math.Abs(got-want) > 1e-9 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	f(500*time.Millisecond, time.Second, 0)
	f(500*time.Millisecond, time.Second, .5)
	f(999*time.Millisecond, time.Second, .5)
	f(time.Second, 0, 1/1.999/4)
	if own := loadreport.New(loadreport.Config{}).Report().CPU; own < 0 || own > 1.5 {
		t.Errorf("of this process: %v", own)
	}
}

func TestNamed(t *testing.T) {
	s := server(newClock())
	s.Set("queue_depth", 3)
	s.Set("kv.cache-use", .5)
	s.Set("in_flight", 99)
	s.Set("a b", 1)
	s.Set("", 1)
	s.Set("gone", 1)
	s.Set("gone", math.NaN())
	s.SetUtilization(.7)
	s.SetMemory(math.Inf(1))
	want := report(0)
	want.Utilization, want.Named = .7, map[string]float64{"queue_depth": 3, "kv.cache-use": .5}
	if diff := cmp.Diff(want, s.Report()); diff != "" {
		t.Error(diff)
	}
}

// TestMiddleware goes over real HTTP.
func TestMiddleware(t *testing.T) {
	s := loadreport.New(loadreport.Config{})
	block, entered := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/block", func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-block })
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "a")
		w.(http.Flusher).Flush()
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	outer := http.NewServeMux()
	outer.Handle("/", s.Middleware(mux))
	outer.Handle("/loadz", s.ProbeHandler())
	srv := httptest.NewServer(outer)
	defer srv.Close()
	get := func(path string, cost string) (loadreport.Report, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		if err != nil {
			return loadreport.Report{}, err
		}
		req.Header.Set(loadreport.CostHeader, cost)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return loadreport.Report{}, err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return loadreport.Report{}, err
		}
		r, ok := loadreport.FromHeader(resp.Header)
		if !ok {
			return r, fmt.Errorf("no report in %v", resp.Header)
		}
		return r, nil
	}
	done := make(chan error)
	go func() { _, err := get("/block", "30"); done <- err }()
	<-entered
	for _, path := range []string{"/text", "/bad", "/loadz", "/nowhere"} {
		r, err := get(path, "nonsense")
		if err != nil || r.InFlight != 30 || !r.HasInFlight {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	if _, err := get("/panic", "5"); err == nil {
		t.Error("a panic was answered")
	}
	close(block)
	if err := <-done; err != nil {
		t.Error(err)
	}
	for s.Report().InFlight != 0 { // the handler of a panic ends after its connection
		time.Sleep(time.Millisecond)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestForms: what other implementations of ORCA write is read.
func TestForms(t *testing.T) {
	want := loadreport.Report{CPU: .25, QPS: 1000, Named: map[string]float64{"foo": 123}}
	// OrcaLoadReport{cpu_utilization: 0.25, rps_fractional: 1000, named_metrics: {"foo": 123}}
	bin := []byte{0x09, 0, 0, 0, 0, 0, 0, 0xd0, 0x3f, 0x31, 0, 0, 0, 0, 0, 0x40, 0x8f, 0x40,
		0x42, 0x0e, 0x0a, 3, 'f', 'o', 'o', 0x11, 0, 0, 0, 0, 0, 0xc0, 0x5e, 0x40}
	if diff := cmp.Diff(bin, want.Marshal()); diff != "" {
		t.Error(diff)
	}
	for _, h := range []http.Header{
		{loadreport.Header: {"TEXT cpu_utilization=0.25, rps_fractional=1000, named_metrics.foo=123, new_field=9"}},
		{loadreport.Header: {`JSON {"cpu_utilization": 0.25, "rps_fractional": 1000, "named_metrics": {"foo": 123}}`}},
		{loadreport.Header: {"BIN " + base64.StdEncoding.EncodeToString(bin)}},
		{loadreport.HeaderBin: {base64.RawStdEncoding.EncodeToString(bin)}},
	} {
		got, ok := loadreport.FromHeader(h)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%v: %s", h, diff)
		}
	}
	for _, bad := range []string{"", "XML <a/>", "TEXT cpu_utilization", "TEXT a=b", "TEXT cpu_utilization=NaN", "JSON {", "BIN !", "BIN Cg==", "TEXT " + strings.Repeat("named_metrics.a=1,", 300)} {
		if _, err := loadreport.Parse(bad); !errors.Is(err, loadreport.ErrReport) {
			t.Errorf("%.30q: %v", bad, err)
		}
	}
}

// TestRoundTrip: a report survives both forms, the text to six digits.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pos := rapid.Float64Range(0, 1e6)
		r := loadreport.Report{CPU: pos.Draw(t, "cpu"), Memory: pos.Draw(t, "mem"), QPS: pos.Draw(t, "qps"), EPS: pos.Draw(t, "eps"), Utilization: pos.Draw(t, "util")}
		if rapid.Bool().Draw(t, "flight") {
			r.InFlight, r.HasInFlight = rapid.Int64Range(0, 1<<40).Draw(t, "n"), true
		}
		if m := rapid.MapOfN(rapid.StringMatching(`[a-z_.]{1,8}`), rapid.Float64Range(1, 1e9), 0, 5).Draw(t, "named"); len(m) > 0 {
			r.Named = m
		}
		got, err := loadreport.Unmarshal(r.Marshal())
		if diff := cmp.Diff(r, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
		got, err = loadreport.Parse(r.Text())
		if err != nil || math.Abs(got.QPS-r.QPS) > 1e-5*r.QPS || got.HasInFlight != r.HasInFlight || len(got.Named) != len(r.Named) {
			t.Fatalf("%s: %+v, %v", r.Text(), got, err)
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(loadreport.Report{CPU: 1, Named: map[string]float64{"a": 1}}.Marshal())
	f.Add([]byte{0x42, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := loadreport.Unmarshal(b)
		if err != nil {
			return
		}
		again, err := loadreport.Unmarshal(r.Marshal())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(again.Marshal(), r.Marshal()); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("TEXT cpu_utilization=0.3,named_metrics.a=1")
	f.Add(`JSON {"named_metrics":{"in_flight":-1e300}}`)
	f.Add("BIN CQ==")
	f.Fuzz(func(t *testing.T, v string) {
		r, err := loadreport.Parse(v)
		if err != nil {
			return
		}
		if _, err := loadreport.Parse(r.Text()); err != nil || r.InFlight < 0 || r.Latency < 0 {
			t.Errorf("%q: %+v, %v", v, r, err)
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	s := loadreport.New(loadreport.Config{})
	s.Set("queue_depth", 3)
	b.ReportAllocs()
	for b.Loop() {
		r := s.Begin(1)
		_ = r.Report().Text()
		r.Done(false)
	}
}
