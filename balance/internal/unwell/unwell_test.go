package unwell

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
	"github.com/shardd/shardd/balance/c3"
	"github.com/shardd/shardd/balance/lalb"
	"github.com/shardd/shardd/balance/latency"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/balance/subset"
	"github.com/shardd/shardd/balance/wrr"
)

var update = flag.Bool("update", false, "write the tables into docs/algorithms/policies-unwell.md")

const page = "../../../docs/algorithms/policies-unwell.md"

// subject is a row: a policy with one setting.
type subject struct {
	name, setting string
	weighted      bool // fair is by weight, else the same for all
	make          func(*balance.Set) (balance.Picker, error)
	probe         func(p balance.Picker, now time.Duration, seed uint64, well bool)
	tick          func(p balance.Picker, now time.Duration, well bool)
}

type maker = func(*balance.Set) (balance.Picker, error)

var counted = balance.ErrorLoad{Each: 10}

func p2c(cost balance.Cost, err error) maker {
	return func(s *balance.Set) (balance.Picker, error) {
		if err != nil {
			return nil, err
		}
		return balance.NewP2C(s, cost)
	}
}

func choices(errs balance.ErrorLoad) maker {
	return func(s *balance.Set) (balance.Picker, error) {
		return balance.NewLeastRequest(s, balance.Choices{Replace: true, Cost: &balance.InFlight{Errors: errs}})
	}
}

func scan(errs balance.ErrorLoad) maker {
	return func(s *balance.Set) (balance.Picker, error) {
		return balance.NewFullScan(s, &balance.InFlight{Errors: errs})
	}
}

func smooth(cfg wrr.SmoothConfig) maker {
	return func(s *balance.Set) (balance.Picker, error) { return wrr.NewSmooth(s, cfg) }
}

func weightedLeast(errs balance.ErrorLoad) maker {
	return func(s *balance.Set) (balance.Picker, error) {
		return wrr.NewWeightedLeast(s, wrr.WeightedLeastConfig{Errors: errs})
	}
}

func lalbWith(cfg lalb.Config) maker {
	return func(s *balance.Set) (balance.Picker, error) { return lalb.New(s, cfg) }
}

func c3With(cfg c3.Config) maker {
	return func(s *balance.Set) (balance.Picker, error) { return c3.New(s, cfg) }
}

func success(cfg latency.SuccessConfig) maker {
	return func(s *balance.Set) (balance.Picker, error) { return latency.NewSuccess(s, cfg) }
}

// probes answers probes at once, from all but an unwell last node.
func probes(p balance.Picker, now time.Duration, seed uint64, well bool) {
	q := p.(*prequal.Picker)
	var buf [8]int
	for _, i := range q.Probes(seed, buf[:0]) {
		if i < q.Set().Len()-1 || well {
			q.Report(i, now, q.Set().Node(i).InFlight(), 10*time.Millisecond)
		}
	}
}

// reports reports load, from all but an unwell last node.
func reports(p balance.Picker, now time.Duration, well bool) {
	q := p.(*wrr.Reported)
	for i := range q.Set().Len() {
		if i < q.Set().Len()-1 || well {
			q.Report(i, now, wrr.Load{QPS: 100, Utilization: 0.5})
		}
	}
}

func turnSubjects() []subject {
	return []subject{
		{name: "random", setting: "by weight", weighted: true, make: func(s *balance.Set) (balance.Picker, error) { return balance.NewRandom(s), nil }},
		{name: "round robin", make: func(s *balance.Set) (balance.Picker, error) { return wrr.NewRoundRobin(s, 0), nil }},
		{name: "expanded", weighted: true, make: func(s *balance.Set) (balance.Picker, error) { return wrr.NewExpanded(s, 0) }},
		{name: "smooth", weighted: true, make: smooth(wrr.SmoothConfig{})},
		{name: "smooth", setting: "max fails 1, 10 s", weighted: true, make: smooth(wrr.SmoothConfig{MaxFails: 1})},
		{name: "smooth", setting: "max fails 3, 2 s", weighted: true, make: smooth(wrr.SmoothConfig{MaxFails: 3, FailTimeout: 2 * time.Second})},
		{name: "smooth", setting: "max conns 5", weighted: true, make: smooth(wrr.SmoothConfig{MaxConns: 5})},
		{name: "EDF", weighted: true, make: func(s *balance.Set) (balance.Picker, error) { return wrr.NewEDF(s), nil }},
		{name: "static stride", weighted: true, make: func(s *balance.Set) (balance.Picker, error) { return wrr.NewStride(s, 0), nil }},
		{name: "reported load", setting: "blackout 10 s, expiration 3 min", make: func(s *balance.Set) (balance.Picker, error) {
			return wrr.NewReported(s, wrr.ReportedConfig{}, 0), nil
		}, tick: reports},
	}
}

func loadSubjects() []subject {
	return []subject{
		{name: "least connections", weighted: true, make: func(s *balance.Set) (balance.Picker, error) { return wrr.NewLeastConn(s), nil }},
		{name: "random two", weighted: true, make: func(s *balance.Set) (balance.Picker, error) { return balance.NewRandomTwo(s, nil) }},
		{name: "full scan", weighted: true, make: scan(balance.ErrorLoad{})},
		{name: "full scan", setting: "errors 10", weighted: true, make: scan(counted)},
		{name: "least request", weighted: true, make: choices(balance.ErrorLoad{})},
		{name: "least request", setting: "errors 10", weighted: true, make: choices(counted)},
		{name: "weighted least", setting: "bias 1", weighted: true, make: weightedLeast(balance.ErrorLoad{})},
		{name: "weighted least", setting: "bias 1, errors 10", weighted: true, make: weightedLeast(counted)},
		{name: "P2C", weighted: true, make: p2c(nil, nil)},
		{name: "P2C", setting: "errors 10", weighted: true, make: p2c(&balance.InFlight{Errors: counted}, nil)},
		{name: "aperture", setting: "from all nodes", make: func(s *balance.Set) (balance.Picker, error) {
			return subset.NewAperture(s, subset.ApertureConfig{Min: 10})
		}},
		{name: "prequal", probe: probes, make: func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) }},
	}
}

func latencySubjects() []subject {
	return []subject{
		{name: "Peak EWMA", setting: "10 s", weighted: true, make: p2c(latency.NewPeakEWMA(latency.PeakConfig{}))},
		{name: "Peak EWMA", setting: "1 s", weighted: true, make: p2c(latency.NewPeakEWMA(latency.PeakConfig{Decay: time.Second}))},
		{name: "Peak EWMA", setting: "10 s, errors 10", weighted: true, make: p2c(latency.NewPeakEWMA(latency.PeakConfig{Errors: counted}))},
		{name: "Peak EWMA", setting: "10 s, error cap 30 s", weighted: true, make: p2c(latency.NewPeakEWMA(latency.PeakConfig{ErrorCap: 30 * time.Second}))},
		{name: "squared EWMA", weighted: true, make: p2c(latency.NewSquaredEWMA(latency.SquaredConfig{}))},
		{name: "success (kratos)", make: success(latency.Kratos())},
		{name: "success (go-zero)", make: success(latency.GoZero())},
		{name: "LALB", setting: "floor 0", make: lalbWith(lalb.Config{})},
		{name: "LALB", setting: "floor 0.02", make: lalbWith(lalb.Config{Floor: 0.02})},
		{name: "LALB", setting: "floor 0.1", make: lalbWith(lalb.Config{Floor: 0.1})},
		{name: "LALB", setting: "floor 0.3", make: lalbWith(lalb.Config{Floor: 0.3})},
		{name: "C3", setting: "stale 10 s", make: c3With(c3.Config{})},
		{name: "C3", setting: "stale 1 s", make: c3With(c3.Config{Stale: time.Second})},
		{name: "C3", setting: "never stale", make: c3With(c3.Config{Stale: -1})},
	}
}

// hanging is ten nodes, weights 1 and 2; the last one, of weight 2, does not
// answer from 20 s to 60 s.
func hanging() Scenario {
	return Scenario{
		Weights: []float64{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}, QPS: 1000, Mean: 10 * time.Millisecond, Timeout: time.Second,
		From: 20 * time.Second, To: 60 * time.Second, End: 180 * time.Second,
	}
}

func (s subject) run(t *testing.T, sc Scenario) Figures {
	t.Helper()
	p, err := s.make(balancetest.NewSet(t, sc.Weights...))
	if err != nil {
		t.Fatal(err)
	}
	sc.Probe, sc.Tick = s.probe, s.tick
	return sc.Run(p, s.fair(sc))
}

func (s subject) fair(sc Scenario) float64 {
	n := len(sc.Weights)
	if !s.weighted {
		return 1 / float64(n)
	}
	total := 0.0
	for _, w := range sc.Weights {
		total += w
	}
	return sc.Weights[n-1] / total
}

func hangTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| policy | setting | fair share | first 5 s | last 20 s | noticed after |\n|---|---|---|---|---|---|\n")
	sc := hanging()
	for _, list := range [][]subject{turnSubjects(), loadSubjects(), latencySubjects()} {
		for _, s := range list {
			f := s.run(t, sc)
			notice := "not in 120 s"
			if f.Notice >= 0 {
				notice = fmt.Sprintf("%.1f s", f.Notice.Seconds())
			}
			fmt.Fprintf(&b, "| %s | %s | %.1f %% | %.2f %% | %.2f %% | %s |\n", s.name, s.setting, 100*s.fair(sc), 100*f.First, 100*f.Late, notice)
		}
	}
	return b.String()
}

// failing is eleven equal nodes; the last one answers every request with an
// error after 1 ms.
func failing() Scenario {
	return Scenario{
		Weights: balancetest.Equal(11), QPS: 1000, Mean: 20 * time.Millisecond, Timeout: time.Second,
		From: 0, To: 60 * time.Second, End: 60 * time.Second,
		Answer: func() (time.Duration, balance.Result) { return time.Millisecond, balance.Failure },
	}
}

// sink is a row of the second table: without and with errors counted.
type sink struct {
	name          string
	without, with maker
	how           string
}

func sinks() []sink {
	return []sink{
		{"full scan", scan(balance.ErrorLoad{}), scan(counted), "errors 10"},
		{"least request", choices(balance.ErrorLoad{}), choices(counted), "errors 10"},
		{"P2C", p2c(nil, nil), p2c(&balance.InFlight{Errors: counted}, nil), "errors 10"},
		{"weighted least", weightedLeast(balance.ErrorLoad{}), weightedLeast(counted), "errors 10"},
		{"Peak EWMA", p2c(latency.NewPeakEWMA(latency.PeakConfig{})), p2c(latency.NewPeakEWMA(latency.PeakConfig{Errors: counted})), "errors 10"},
		{"Peak EWMA", p2c(latency.NewPeakEWMA(latency.PeakConfig{})), p2c(latency.NewPeakEWMA(latency.PeakConfig{ErrorCap: 30 * time.Second})), "error cap 30 s"},
		{"squared EWMA", p2c(latency.NewSquaredEWMA(latency.SquaredConfig{})), p2c(latency.NewSquaredEWMA(latency.SquaredConfig{Errors: counted})), "errors 10"},
		{"C3", c3With(c3.Config{}), c3With(c3.Config{Errors: counted}), "errors 10"},
	}
}

func sinkTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| policy | errors not counted | counted | how |\n|---|---|---|---|\n")
	sc := failing()
	share := func(m maker) float64 { return (subject{make: m}).run(t, sc).Late }
	for _, s := range sinks() {
		with := share(s.with)
		fmt.Fprintf(&b, "| %s | %.2f %% | %.2f %% | %s |\n", s.name, 100*share(s.without), 100*with, s.how)
		if with > 2.0/11 {
			t.Errorf("%s with errors counted (%s) sends %.1f %% to a node that fails fast, want at most 2/n = 18 %%", s.name, s.how, 100*with)
		}
	}
	own := share(lalbWith(lalb.Config{}))
	fmt.Fprintf(&b, "| LALB | | %.2f %% | its own: an error adds the time-out to the latency |\n", 100*own)
	if own > 2.0/11 {
		t.Errorf("LALB sends %.1f %% to a node that fails fast, want at most 2/n", 100*own)
	}
	return b.String()
}

// TestTables holds the tables of the page against the code; -update writes them.
func TestTables(t *testing.T) {
	if balancetest.RaceEnabled {
		t.Skip("long, and without concurrency")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("math.Exp differs in the last bit elsewhere, and picks with it")
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, table := range map[string]string{"hanging": hangTable(t), "failing": sinkTable(t)} {
		if text, err = replace(text, name, table); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(data), text); d != "" {
		t.Errorf("%s does not say what the code does; run this test with -update (-page +code):\n%s", page, d)
	}
}

// replace puts a table between its two marks.
func replace(text, name, table string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		return "", fmt.Errorf("%s has no marks %q and %q", page, begin, end)
	}
	return text[:i+len(begin)] + table + text[j:], nil
}

// TestSameOnEveryRun: figures are a function of the settings.
func TestSameOnEveryRun(t *testing.T) {
	s := subject{make: p2c(latency.NewPeakEWMA(latency.PeakConfig{}))}
	sc := hanging()
	sc.From, sc.To, sc.End = 1*time.Second, 7*time.Second, 9*time.Second
	if a, b := s.run(t, sc), s.run(t, sc); a != b {
		t.Errorf("two runs: %+v and %+v", a, b)
	}
}
