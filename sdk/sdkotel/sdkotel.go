// Package sdkotel makes OpenTelemetry metrics of what a sdk.Client does: the version
// it holds and how old that is, what it took and refused, and what Acquire has done,
// in all and for each node.
//
//	metrics, err := sdkotel.New(otel.Meter("shardd"))
//	client, err := sdk.New(source, sdk.WithHook(metrics))
//	stop, err := metrics.Follow(client)
//
// All names begin with shardd.sdk. Law: counters only grow while the client lives; a
// collection reads the client once. Cost: nothing between collections but a
// histogram's observation for each version; a collection is O(nodes).
//
// What it does not do: it sets up no exporter, and traces no requests.
package sdkotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/internal/figures"
	"github.com/shardd/shardd/topology"
)

const prefix = "shardd.sdk."

// Metrics is a hook of a sdk.Client. Make one with New for each client.
type Metrics struct {
	meter    metric.Meter
	attrs    metric.MeasurementOption
	without  bool
	build    metric.Float64Histogram
	refused  metric.Int64Counter
	problems metric.Int64Counter
}

var (
	_ sdk.TakenHook   = (*Metrics)(nil)
	_ sdk.RefusedHook = (*Metrics)(nil)
	_ sdk.ProblemHook = (*Metrics)(nil)
)

// Option configures Metrics.
type Option func(*options)

type options struct {
	attrs   []attribute.KeyValue
	without bool
}

// WithAttributes adds attributes to all metrics, to tell several clients of one
// process apart.
func WithAttributes(attrs ...attribute.KeyValue) Option {
	return func(o *options) { o.attrs = append(o.attrs, attrs...) }
}

// WithoutNodes leaves the metrics out that each node has for itself: nine series a
// node.
func WithoutNodes() Option { return func(o *options) { o.without = true } }

// New makes the instruments. The error is the meter's.
func New(meter metric.Meter, opts ...Option) (*Metrics, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	m := &Metrics{meter: meter, attrs: metric.WithAttributes(o.attrs...), without: o.without}
	var errs [3]error
	m.build, errs[0] = meter.Float64Histogram(prefix+"topology.build", metric.WithUnit("s"),
		metric.WithDescription("Time that the tables of new versions took."), metric.WithExplicitBucketBoundaries(figures.BuildBuckets()...))
	m.refused, errs[1] = meter.Int64Counter(prefix+"topologies.refused", metric.WithUnit("{version}"),
		metric.WithDescription("Versions refused, by reason."))
	m.problems, errs[2] = meter.Int64Counter(prefix+"source.problems", metric.WithUnit("{problem}"),
		metric.WithDescription("Problems that the source reported."))
	return m, errors.Join(errs[:]...)
}

// OnTaken counts the time of a build. The client calls it.
func (m *Metrics) OnTaken(_, _ topology.Ref, build time.Duration) {
	m.build.Record(context.Background(), build.Seconds(), m.attrs)
}

// OnRefused counts a refusal by its reason. The client calls it.
func (m *Metrics) OnRefused(e *sdk.RefusedError) {
	m.refused.Add(context.Background(), 1, m.attrs, metric.WithAttributes(attribute.String("reason", figures.Reason(e))))
}

// OnProblem counts a problem. The client calls it.
func (m *Metrics) OnProblem(error) { m.problems.Add(context.Background(), 1, m.attrs) }

// Follow says whose metrics these are, until stop is called. The error is the
// meter's.
func (m *Metrics) Follow(c *sdk.Client) (stop func() error, err error) {
	var errs []error
	var all []metric.Observable
	own, nodes := figures.Client(), figures.Node()
	if m.without {
		nodes = nil
	}
	ownObs, nodeObs := make([]metric.Float64Observable, len(own)), make([]metric.Float64Observable, len(nodes))
	for i, f := range own {
		ownObs[i], err = m.observable(f.Name, f.Unit, f.Help, f.Kind)
		all, errs = append(all, ownObs[i]), append(errs, err)
	}
	for i, f := range nodes {
		nodeObs[i], err = m.observable(f.Name, f.Unit, f.Help, f.Kind)
		all, errs = append(all, nodeObs[i]), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	reg, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r := figures.Read(c)
		for i, f := range own {
			o.ObserveFloat64(ownObs[i], f.Of(r), m.attrs)
		}
		for _, n := range r.Load.Nodes {
			node := metric.WithAttributes(attribute.String("node", n.ID))
			for i, f := range nodes {
				o.ObserveFloat64(nodeObs[i], f.Of(n), m.attrs, node)
			}
		}
		return nil
	}, all...)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}

func (m *Metrics) observable(name, unit, help string, kind figures.Kind) (metric.Float64Observable, error) {
	u, d := metric.WithUnit(unit), metric.WithDescription(help)
	if kind == figures.Counter {
		return m.meter.Float64ObservableCounter(prefix+name, u, d)
	}
	return m.meter.Float64ObservableGauge(prefix+name, u, d)
}
