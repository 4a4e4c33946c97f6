// Package sdkprom makes Prometheus metrics of what a sdk.Client does: the version it
// holds and how old that is, what it took and refused, and what Acquire has done, in
// all and for each node.
//
//	metrics := sdkprom.New()
//	client, err := sdk.New(source, sdk.WithHook(metrics))
//	metrics.Follow(client)
//	prometheus.MustRegister(metrics)
//
// All names begin with shardd_sdk_. Law: counters only grow while the client lives;
// a collection reads the client once. Cost: nothing between collections but a
// histogram's observation for each version; a collection is O(nodes).
//
// What it does not do: it starts no HTTP server. Figures of requests that go by
// Route alone are not there: lookups count nothing.
package sdkprom

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/internal/figures"
	"github.com/shardd/shardd/topology"
)

const prefix = "shardd_sdk_"

// Metrics is a prometheus.Collector and a hook of a sdk.Client. Make one with New
// for each client.
type Metrics struct {
	client   atomic.Pointer[sdk.Client]
	build    prometheus.Histogram
	refused  *prometheus.CounterVec
	problems prometheus.Counter
	figures  []described[figures.Figure]
	nodes    []described[figures.NodeFigure]
}

type described[F any] struct {
	desc   *prometheus.Desc
	figure F
	kind   prometheus.ValueType
}

var (
	_ prometheus.Collector = (*Metrics)(nil)
	_ sdk.TakenHook        = (*Metrics)(nil)
	_ sdk.RefusedHook      = (*Metrics)(nil)
	_ sdk.ProblemHook      = (*Metrics)(nil)
)

// Option configures Metrics.
type Option func(*options)

type options struct {
	labels prometheus.Labels
	nodes  bool
}

// WithLabels adds constant labels to all metrics, to tell several clients of one
// process apart.
func WithLabels(l prometheus.Labels) Option { return func(o *options) { o.labels = l } }

// WithoutNodes leaves the metrics out that each node has for itself: nine series a
// node.
func WithoutNodes() Option { return func(o *options) { o.nodes = false } }

// New returns metrics without a client. Give them to sdk.WithHook and then to
// Follow, and register them.
func New(opts ...Option) *Metrics {
	o := options{nodes: true}
	for _, opt := range opts {
		opt(&o)
	}
	m := &Metrics{
		build: prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + "topology_build_seconds",
			Help: "Time that the tables of new versions took.", ConstLabels: o.labels, Buckets: figures.BuildBuckets()}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "topologies_refused_total",
			Help: "Versions refused, by reason.", ConstLabels: o.labels}, []string{"reason"}),
		problems: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "source_problems_total",
			Help: "Problems that the source reported.", ConstLabels: o.labels}),
	}
	for _, reason := range figures.Reasons() {
		m.refused.WithLabelValues(reason)
	}
	for _, f := range figures.Client() {
		m.figures = append(m.figures, described[figures.Figure]{o.describe(f.Name, f.Unit, f.Help, f.Kind, nil), f, valueType(f.Kind)})
	}
	if o.nodes {
		for _, f := range figures.Node() {
			m.nodes = append(m.nodes, described[figures.NodeFigure]{o.describe(f.Name, f.Unit, f.Help, f.Kind, []string{"node"}), f, valueType(f.Kind)})
		}
	}
	return m
}

// describe makes a Prometheus name of one with dots: unit and _total at the end.
func (o options) describe(name, unit, help string, kind figures.Kind, labels []string) *prometheus.Desc {
	name = prefix + strings.ReplaceAll(name, ".", "_")
	if unit == "s" {
		name += "_seconds"
	}
	if kind == figures.Counter {
		name += "_total"
	}
	return prometheus.NewDesc(name, help, labels, o.labels)
}

func valueType(k figures.Kind) prometheus.ValueType {
	if k == figures.Counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// Follow says whose metrics these are. Before it, and with nil, only what the hooks
// count is collected.
func (m *Metrics) Follow(c *sdk.Client) { m.client.Store(c) }

// OnTaken counts the time of a build. The client calls it.
func (m *Metrics) OnTaken(_, _ topology.Ref, build time.Duration) { m.build.Observe(build.Seconds()) }

// OnRefused counts a refusal by its reason. The client calls it.
func (m *Metrics) OnRefused(e *sdk.RefusedError) {
	m.refused.WithLabelValues(figures.Reason(e)).Inc()
}

// OnProblem counts a problem. The client calls it.
func (m *Metrics) OnProblem(error) { m.problems.Inc() }

// Describe is prometheus.Collector.Describe.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.build.Describe(ch)
	m.refused.Describe(ch)
	m.problems.Describe(ch)
	for _, f := range m.figures {
		ch <- f.desc
	}
	for _, f := range m.nodes {
		ch <- f.desc
	}
}

// Collect is prometheus.Collector.Collect.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.build.Collect(ch)
	m.refused.Collect(ch)
	m.problems.Collect(ch)
	c := m.client.Load()
	if c == nil {
		return
	}
	r := figures.Read(c)
	for _, f := range m.figures {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.figure.Of(r))
	}
	for _, f := range m.nodes {
		for _, n := range r.Load.Nodes {
			ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.figure.Of(n), n.ID)
		}
	}
}
