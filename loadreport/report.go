package loadreport

import (
	"maps"
	"time"
)

// The names of what ORCA has no field for, among a report's named metrics.
const (
	metricInFlight = "in_flight"
	metricLatency  = "latency_seconds"
	metricService  = "service_seconds"
)

// Report is what a server says of itself. A value that is 0 is not sent: 0 and
// unknown are the same.
type Report struct {
	// InFlight is the cost of the requests in flight, from all clients, without
	// the one that this report answers. HasInFlight tells 0 from unknown.
	InFlight    int64
	HasInFlight bool
	// Latency is what a request is expected to take with so many in flight: the
	// median of recent ones that began with about as many.
	Latency time.Duration
	// Service is how long the server worked on the request that this answers, up
	// to the moment at which the report was made.
	Service time.Duration

	QPS         float64 // requests a second, over the last ten
	EPS         float64 // of them, those that failed
	CPU         float64 // processor's use by the process; 1 = all that it may use
	Memory      float64 // as the server says (SetMemory); 1 = full
	Utilization float64 // as the application says (SetUtilization); 1 = full, more is possible

	// Named are other values: queue depth, pending tokens, use of a cache.
	Named map[string]float64
}

// named returns all named metrics as they are sent.
func (r Report) named() map[string]float64 {
	m := make(map[string]float64, len(r.Named)+3)
	maps.Copy(m, r.Named)
	if r.HasInFlight {
		m[metricInFlight] = float64(r.InFlight)
	}
	if r.Latency > 0 {
		m[metricLatency] = r.Latency.Seconds()
	}
	if r.Service > 0 {
		m[metricService] = r.Service.Seconds()
	}
	return m
}

// set takes one named metric that was received.
func (r *Report) set(name string, v float64) {
	switch name {
	case metricInFlight:
		r.InFlight, r.HasInFlight = int64(min(max(v, 0), 1<<53)), true
	case metricLatency:
		r.Latency = seconds(v)
	case metricService:
		r.Service = seconds(v)
	default:
		if r.Named == nil {
			r.Named = make(map[string]float64)
		}
		r.Named[name] = v
	}
}

// seconds returns v seconds, at most about a year and never negative.
func seconds(v float64) time.Duration {
	return time.Duration(min(max(v, 0), 3e7) * float64(time.Second))
}
