package experiment

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/bench/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func play(t *testing.T, name string, e Env) []Row {
	t.Helper()
	x := Find(name)
	if x == nil {
		t.Fatalf("no experiment %q", name)
	}
	rows, err := x.Play(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestExact plays what costs nothing and has no chance in it, or little.
func TestExact(t *testing.T) {
	if raceDetector {
		t.Skip("no goroutine shares anything with another here")
	}
	for _, name := range []string{"formulas", "swrr", "two-hosts", "queueing", "retry", "movement", "sinkhole", "antagonist", "herd"} {
		for _, r := range play(t, name, Env{Quick: true}) {
			if !r.OK() {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// TestSameBytes: the figures do not depend on how many runs are played at once,
// nor on the run.
func TestSameBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Params
	}{
		{"homo", Params{N: []int{5}, Lambda: []float64{.5}, Units: 100, Seeds: 3}},
		{"stale", Params{N: []int{5}, T: []float64{0, 3}, Units: 100, Seeds: 2}},
		{"bounded", Params{N: []int{5}, M: []int{1, 4}, C: []float64{1.25}, Units: 5, Seeds: 2}},
		{"hotkeys", Params{N: []int{8}, M: []int{3}, Units: 100, Seeds: 2}},
		{"affinity", Params{N: []int{4}, C: []float64{1.25}, Units: 50, Seeds: 2}},
	} {
		if raceDetector && c.name != "bounded" {
			continue // where goroutines are
		}
		text := func(workers int) string {
			t.Helper()
			var b bytes.Buffer
			if err := Write(&b, JSON, play(t, c.name, Env{Params: c.p, Workers: workers})); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		if d := cmp.Diff(text(1), text(3)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestEveryPolicy plays each policy by its name.
func TestEveryPolicy(t *testing.T) {
	for _, name := range Policies() {
		f := fleet{cfg: sim.Config{Seed: 1, Servers: heteroServers(), Rate: heteroArrivals, Window: units(14)}}
		if err := f.client(name, setting{clients: 1}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r, err := f.run()
		if err != nil || r.Arrivals == 0 || r.Refused > 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestParams(t *testing.T) {
	f := func(name string, p Params) {
		t.Helper()
		if _, err := Find(name).Play(t.Context(), Env{Params: p}); !errors.Is(err, ErrParam) {
			t.Errorf("%s, %+v: %v", name, p, err)
		}
	}
	f("homo", Params{N: []int{0}})
	f("homo", Params{Lambda: []float64{-1}})
	f("homo", Params{Lambda: []float64{math.NaN()}})
	f("homo", Params{Policies: []string{"magic"}})
	f("homo", Params{N: []int{1_000_000}})
	f("homo", Params{Lambda: []float64{1e-300}})
	f("homo", Params{Seeds: 1e9})
	f("homo", Params{Units: -1})
	f("fixed", Params{Lambda: []float64{1}})
	f("formulas", Params{Lambda: []float64{1}})
	f("hetero", Params{Tau: []float64{1e-12}})
	f("bounded", Params{C: []float64{.5}})
	f("clients", Params{M: []int{1_000_000}})
	f("cachefleet", Params{N: []int{2}})
	f("stale", Params{T: []float64{-1}})
	f("stale", Params{T: []float64{1e-12}})
	f("stale", Params{Seeds: -1})
	f("stale", Params{Units: math.Inf(1)})
	f("lalb", Params{Policies: []string{"prequal"}})
	if Find("nothing") != nil {
		t.Error("an experiment out of nowhere")
	}
}

// TestFixedLevels: each level's share is near its law, and each row has its own.
func TestFixedLevels(t *testing.T) {
	for _, r := range play(t, "fixed", Env{Params: Params{N: []int{200}, Units: 500, Seeds: 1}}) {
		share, ok := r.Get("s_i")
		law, _ := r.Get("theory")
		if ok && math.Abs(share-law) > .05 {
			t.Errorf("%+v: %v, want about %v", r.Params, share, law)
		}
	}
}

// TestFromEmptyFew: with few servers nothing may be under way at the end.
func TestFromEmptyFew(t *testing.T) {
	rows := play(t, "fixed", Env{Params: Params{N: []int{2}, Lambda: []float64{.1}}, FromEmpty: true})
	if len(rows) != emptyUntil/emptyStep+1 {
		t.Errorf("%d rows", len(rows))
	}
}

// TestShorter: runs that are shorter than the set-up's are said to be.
func TestShorter(t *testing.T) {
	f := func(p Params, want string) {
		t.Helper()
		if got := Find("homo").Shorter(Env{Params: p}); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
	f(Params{}, "")
	f(Params{Units: 200, Seeds: 3}, "units 200 of 50000")
	f(Params{Units: 60000, Seeds: 1}, "seeds 1 of 3")
}

// TestFence: a cache that comes back serves old values, and none behind the fence.
func TestFence(t *testing.T) {
	if raceDetector {
		t.Skip("no goroutine shares anything with another here")
	}
	for _, c := range changes() {
		if c.what != "return" || c.how == "ramp" && !c.fence {
			continue
		}
		run, _, err := playWindows(c, 4, 1)
		if err != nil {
			t.Fatal(err)
		}
		stale := 0.0
		for _, x := range run.stale {
			stale += x
		}
		if (stale == 0) != c.fence {
			t.Errorf("%s, fence %t: old values %v", c.how, c.fence, stale)
		}
	}
}

// TestStop: an experiment ends with its context.
func TestStop(t *testing.T) {
	e := Env{Workers: 1}
	boom := errors.New("boom")
	calls := 0
	err := e.each(t.Context(), 5, func(i int) error {
		if calls++; i == 1 {
			return boom
		}
		return nil
	})
	if !errors.Is(err, boom) || calls != 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestChecks(t *testing.T) {
	f := func(c Check, x float64, want bool, text string) {
		t.Helper()
		if got := c.holds(x); got != want {
			t.Errorf("%v of %v is %t", c, x, got)
		}
		if c.String() != text {
			t.Errorf("%q, want %q", c, text)
		}
	}
	f(within("mean", 2, .1), 2.2, true, "mean 2 +- 0.2")
	f(within("mean", 2, .1), 2.21, false, "mean 2 +- 0.2")
	f(within("mean", 2, .1).relax(), 2.39, true, "mean 2 +- 0.4")
	f(between("mean", 70, 105), 70, true, "mean 87.5 +- 18")
	f(between("mean", 70, 105).relax(), 123, false, "mean 87.5 +- 35")
	f(Check{Metric: "fullest", Expected: 3, Tolerance: 1, Fixed: true}.relax(), 5, false, "fullest 3 +- 1")
	f(exactly("sent", 3).relax(), 4, false, "sent = 3")
	f(exactly("sent", 3), math.NaN(), false, "sent = 3")
	f(atLeast("share", .9).relax(), .89, false, "share >= 0.9")
	f(atMost("share", .9), .9, true, "share <= 0.9")
}

// TestQuickKeepsExact: what chance has no part in has no more tolerance in a quick run.
func TestQuickKeepsExact(t *testing.T) {
	for _, x := range []*Experiment{swrr(), movement(), formulas(), queueing()} {
		whole, err := x.Play(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		quick, err := x.Play(t.Context(), Env{Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			if d := cmp.Diff(whole[i].Checks, quick[i].Checks); d != "" {
				t.Errorf("%s, row %d: %s", x.Name, i, d)
			}
		}
	}
}

// sample are two rows: one that is well and one that is not.
func sample() []Row {
	return []Row{
		{Experiment: "stale", Params: []Param{{"n", 100}, {"T", .5}}, Policy: "p2c", Metrics: []Metric{{"mean", 2.81}, {"peak", 9}},
			Checks: []Check{within("mean", 2.8, .02)}},
		{Experiment: "stale", Params: []Param{{"n", 100}, {"T", 5.}}, Policy: "jsq", Bump: true, Metrics: []Metric{{"mean", 3}},
			Checks: []Check{atMost("mean", 2.65)}},
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, JSON, sample()); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(b.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"experiment": "stale", "n": 100., "T": .5, "policy": "p2c", "bump": false, "mean": 2.81, "peak": 9.,
			"expected": map[string]any{"mean": 2.8}, "tolerance": map[string]any{"mean": .056}, "min": map[string]any{}, "max": map[string]any{}, "ok": true},
		{"experiment": "stale", "n": 100., "T": 5., "policy": "jsq", "bump": true, "mean": 3.,
			"expected": map[string]any{}, "tolerance": map[string]any{}, "min": map[string]any{}, "max": map[string]any{"mean": 2.65}, "ok": false},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
	b.Reset()
	if err := Write(&b, JSON, []Row{{Metrics: []Metric{{"mean", math.Inf(1)}}}}); err != nil || !strings.Contains(b.String(), "null") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, Table, sample()); err != nil {
		t.Fatal(err)
	}
	want := `# stale
policy   bump    n    T  mean  peak           expected
p2c     false  100  0.5  2.81     9  mean 2.8 +- 0.056      ok
jsq      true  100    5     3             mean <= 2.65  FAILED

`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	b.Reset()
	if err := Write(&b, CSV, sample()); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(records) != 3 || records[2][2] != "true" {
		t.Errorf("%v, %v", records, err)
	}
	if err := Write(&b, "xml", nil); !errors.Is(err, ErrParam) {
		t.Errorf("xml: %v", err)
	}
}

// TestPlots draws what there is to draw.
func TestPlots(t *testing.T) {
	drawn := 0
	for _, c := range []struct {
		name string
		p    Params
	}{
		{"homo", Params{N: []int{5}, Lambda: []float64{.3, .5}, Units: 100, Seeds: 1}},
		{"stale", Params{N: []int{5}, T: []float64{0, 3}, Units: 100, Seeds: 1}},
		{"fixed", Params{N: []int{20}, Units: 100, Seeds: 1}},
		{"queueing", Params{}}, {"retry", Params{}}, {"swrr", Params{}},
		{"hetero", Params{Units: 10, Seeds: 1, Policies: []string{"p2c", "pewma"}}},
		{"clients", Params{M: []int{1, 2}, Units: 10, Seeds: 1}},
		{"bounded", Params{N: []int{5}, M: []int{2}, Units: 5, Seeds: 1}},
		{"hotkeys", Params{N: []int{8}, Units: 10, Seeds: 1}},
	} {
		if raceDetector && c.name != "bounded" {
			continue // where goroutines are
		}
		rows := play(t, c.name, Env{Params: c.p})
		for name, p := range Find(c.name).Plot(rows) {
			drawn++
			if svg, err := p.SVG(); err != nil || len(svg) == 0 {
				t.Errorf("%s: %v", name, err)
			}
			if png, err := p.PNG(); err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if want := 10; !raceDetector && drawn != want {
		t.Errorf("%d plots drawn, want %d", drawn, want)
	}
	if p := plotFixed(nil); p != nil {
		t.Errorf("a plot of nothing: %v", p)
	}
}

func TestLRU(t *testing.T) {
	c := newLRU(2)
	for i, s := range []struct {
		key int
		hit bool
	}{{1, false}, {2, false}, {1, true}, {3, false}, {2, false}, {3, true}, {1, false}} {
		e, hit := c.get(s.key)
		if hit != s.hit || hit && e.version != int32(s.key) {
			t.Errorf("step %d, key %d: %+v, %t", i, s.key, e, hit)
		}
		e.version = int32(s.key)
	}
}

// TestQuickRows: a quick run of other parameters has their rows, though there is nothing
// to compare them with.
func TestQuickRows(t *testing.T) {
	for _, x := range All() {
		if x.Name != "homo" && x.Name != "stale" {
			continue
		}
		e := Env{Quick: true, Params: Params{N: []int{20}, Lambda: []float64{.5}, Units: 50, Policies: []string{"p2c"}}}
		rows, err := x.Play(t.Context(), e)
		if err != nil || len(rows) == 0 {
			t.Errorf("%s: %d rows, %v", x.Name, len(rows), err)
		}
	}
}
