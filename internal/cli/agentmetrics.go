package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shardd/shardd/membership"
)

// agentMetrics are what an agent shows of itself.
type agentMetrics struct {
	checks  *prometheus.CounterVec // by result
	seconds prometheus.Histogram
	health  *prometheus.GaugeVec // 1 for the health that counts
}

// newAgentMetrics makes the metrics of the agent of node, whose registration
// status tells about.
func newAgentMetrics(node string, status func() membership.MemberStatus) (*agentMetrics, *prometheus.Registry) {
	labels := prometheus.Labels{"node": node}
	m := &agentMetrics{
		checks:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shardd_agent_checks_total", Help: "Checks of the node, by result (ok, failed).", ConstLabels: labels}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "shardd_agent_check_seconds", Help: "Time that a check took.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8), ConstLabels: labels}),
		health:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "shardd_agent_health", Help: "1 for the health that the agent tells (unknown, ok, bad), 0 for the others.", ConstLabels: labels}, []string{"health"}),
	}
	m.tell(membership.HealthUnknown)
	gauge := func(name, help string, value func(membership.MemberStatus) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return value(status()) })
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(m.checks, m.seconds, m.health,
		gauge("shardd_agent_registered", "1 while the registration stands, as far as the agent knows.", func(s membership.MemberStatus) float64 {
			if s.Registered {
				return 1
			}
			return 0
		}),
		gauge("shardd_agent_registration_changed_timestamp_seconds", "When shardd_agent_registered changed last.", func(s membership.MemberStatus) float64 { return float64(s.Since.UnixMilli()) / 1000 }),
		gauge("shardd_agent_incarnation", "Incarnation of the lease held now or last.", func(s membership.MemberStatus) float64 { return float64(s.Incarnation) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "shardd_agent_registrations_lost_total", Help: "How often the registration was lost.", ConstLabels: labels}, func() float64 { return float64(status().Losses) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m, reg
}

// tell sets the health that counts.
func (m *agentMetrics) tell(now membership.Health) {
	for name, h := range map[string]membership.Health{"unknown": membership.HealthUnknown, "ok": membership.HealthOK, "bad": membership.HealthBad} {
		value := 0.0
		if h == now {
			value = 1
		}
		m.health.WithLabelValues(name).Set(value)
	}
}

// checked counts a check.
func (m *agentMetrics) checked(took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.checks.WithLabelValues(result).Inc()
	m.seconds.Observe(took.Seconds())
}

// listenMetrics opens the address for /metrics, "" = none. One that other machines
// can reach has to be allowed.
func listenMetrics(addr string, insecure bool) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--metrics %s: %w; want HOST:PORT", addr, err)
	}
	if ip := net.ParseIP(host); !insecure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &coded{ExitRefused, fmt.Errorf("--metrics %s: other machines can reach this address; listen on 127.0.0.1, or allow it with --insecure if the network is trusted", addr)}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	return ln, nil
}

// serveMetrics serves /metrics until ctx ends, and returns a function that waits
// for that.
func serveMetrics(ctx context.Context, ln net.Listener, reg *prometheus.Registry, log hclog.Logger) (wait func()) {
	if ln == nil {
		return func() {}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, ErrorLog: log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := web.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics are not served any more", "error", err)
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	log.Info("metrics", "address", ln.Addr().String())
	return func() {
		if stop() {
			_ = web.Close()
		}
		<-ended
	}
}
