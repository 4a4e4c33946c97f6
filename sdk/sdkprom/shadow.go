package sdkprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardd/shardd/sdk/shadow"
)

// Shadow is a prometheus.Collector of what a shadow.Shadow counts: requests, those
// that would move, and by node those that it has before and after, gains and loses.
// Counters go back to 0 on shadow.Shadow.Reset, as Prometheus expects of a restart.
type Shadow struct {
	of              *shadow.Shadow
	requests, moved *prometheus.Desc
	nodes           []nodeDesc
}

type nodeDesc struct {
	desc *prometheus.Desc
	of   func(shadow.NodeFigures) uint64
}

// NewShadow returns the collector of s; its names begin with shardd_sdk_shadow_. Of
// the options WithLabels and WithoutNodes hold.
func NewShadow(s *shadow.Shadow, opts ...Option) *Shadow {
	o := options{nodes: true}
	for _, opt := range opts {
		opt(&o)
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+"shadow_"+name+"_total", help, labels, o.labels)
	}
	c := &Shadow{of: s, requests: desc("requests", "Requests shown to the shadow."),
		moved: desc("moved", "Requests that the new mapping would send to another node.")}
	if o.nodes {
		c.nodes = []nodeDesc{
			{desc("node_before", "Requests of the node under the old mapping.", "node"), func(n shadow.NodeFigures) uint64 { return n.Before }},
			{desc("node_after", "Requests of the node under the new mapping.", "node"), func(n shadow.NodeFigures) uint64 { return n.After }},
			{desc("node_in", "Requests that would come to the node.", "node"), func(n shadow.NodeFigures) uint64 { return n.In }},
			{desc("node_out", "Requests that would leave the node.", "node"), func(n shadow.NodeFigures) uint64 { return n.Out }},
		}
	}
	return c
}

// Describe is prometheus.Collector.Describe.
func (c *Shadow) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.requests
	ch <- c.moved
	for _, n := range c.nodes {
		ch <- n.desc
	}
}

// Collect is prometheus.Collector.Collect.
func (c *Shadow) Collect(ch chan<- prometheus.Metric) {
	f := c.of.Figures()
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	count(c.requests, f.Requests)
	count(c.moved, f.Moved)
	for _, d := range c.nodes {
		for _, n := range f.Nodes {
			count(d.desc, d.of(n), n.ID)
		}
	}
}
