package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/shardd/shardd/internal/api"
)

// metrics are what /metrics shows, besides those of Go and the process.
type metrics struct {
	requests *prometheus.CounterVec   // by route, method, status
	seconds  *prometheus.HistogramVec // by route; watches are left out
	watches  prometheus.Gauge
	messages *prometheus.CounterVec // by type
	refused  *prometheus.CounterVec // watches, by code
	dropped  prometheus.Counter     // watches whose client was too slow
	edits    *prometheus.CounterVec // by verb and result
	waited   prometheus.Histogram   // from the accepted edit to its version
}

func newMetrics(reg *prometheus.Registry, c *clusters) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shardd_http_requests_total", Help: "Requests answered, by route, method and status."}, []string{"route", "method", "status"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "shardd_http_request_seconds", Help: "Time to answer, by route, watches left out.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, []string{"route"}),
		watches:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "shardd_watches", Help: "Open watches."}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shardd_watch_messages_total", Help: "Messages sent to watches, by type."}, []string{"type"}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shardd_watches_refused_total", Help: "Watches refused or ended with an error, by code. forked, older and other_cluster say that a client and this server disagree about the past."}, []string{"code"}),
		dropped:  prometheus.NewCounter(prometheus.CounterOpts{Name: "shardd_watches_dropped_total", Help: "Watches ended because their client took no message in time."}),
		edits:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shardd_edits_total", Help: "Edits, by verb and result (ok, or the error's code)."}, []string{"verb", "result"}),
		waited:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "shardd_edit_publish_seconds", Help: "Time from an accepted edit to the version that contains it.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)}),
	}
	for _, col := range []prometheus.Collector{m.requests, m.seconds, m.watches, m.messages, m.refused, m.dropped, m.edits, m.waited,
		&clusterCollector{c}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := reg.Register(col); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// editDone counts an edit.
func (m *metrics) editDone(verb string, err error) {
	result := "ok"
	if err != nil {
		result = string(api.FromError(err).Code)
	}
	m.edits.WithLabelValues(verb, result).Inc()
}

// clusterCollector shows what the hubs hold when it is asked, so that clusters
// that are gone leave no series behind.
type clusterCollector struct{ clusters *clusters }

var clusterDescs = [...]*prometheus.Desc{
	prometheus.NewDesc("shardd_cluster_epoch", "Epoch of the newest version.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_seq", "Seq of the newest version.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_nodes", "Nodes in the newest version.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_generation", "Edits accepted so far.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_unpublished_edits", "Edits accepted that no version contains yet.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_broken_lines", "How often versions did not continue what this process had served before: anything but 0 means that the store was replaced or went back.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_leading", "1 if this process publishes the cluster's versions.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_store_went_back", "1 if somebody holds a version that the store's head neither is nor descends from: nothing is published until the epoch is raised.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_frozen", "1 if an operator froze the cluster.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_members_held", "Members that have lost their leases, too many at the same time to be let go: they are held as down. 0 on servers that do not lead.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_members_waiting", "Members whose change of state waits until owners do not change in steps any more. 0 on servers that do not lead.", []string{"cluster"}, nil),
	prometheus.NewDesc("shardd_cluster_publish_refused", "1 if this process leads and cannot publish the declared state; its log says why.", []string{"cluster"}, nil),
}

// Describe implements prometheus.Collector.
func (c *clusterCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range clusterDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *clusterCollector) Collect(ch chan<- prometheus.Metric) {
	for _, h := range c.clusters.list() {
		v, _, err := h.look()
		if err != nil || v == nil {
			continue
		}
		nodes := 0
		if v.state.Head != nil {
			nodes = v.state.Head.Len()
		}
		head, rule := v.head().Version, h.status()
		for i, value := range [...]uint64{head.Epoch, head.Seq, uint64(nodes), v.state.Generation, v.state.Generation - v.state.Applied, v.line,
			flag(rule.Leading), flag(len(v.state.Shown) > 0), flag(v.state.Frozen != nil), uint64(rule.Held), uint64(rule.Waiting), flag(rule.Err != nil)} {
			ch <- prometheus.MustNewConstMetric(clusterDescs[i], prometheus.GaugeValue, float64(value), h.name)
		}
	}
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
