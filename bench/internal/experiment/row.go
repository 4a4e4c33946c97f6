package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Row is one line of an experiment: what was played, what was measured, and what
// should have been.
type Row struct {
	Experiment string
	Params     []Param
	Policy     string // as in Policies
	Bump       bool   // the dispatcher counts what it sends
	Metrics    []Metric
	Checks     []Check
}

// Param is one setting of a row: a number or a text.
type Param struct {
	Name  string
	Value any
}

// Metric is one figure that was measured.
type Metric struct {
	Name  string
	Value float64
}

// Check says what a metric should be.
type Check struct {
	Metric string
	Kind   Kind
	// Expected is the value, or the limit.
	Expected float64
	// Tolerance is how far from Expected a Near metric may be.
	Tolerance float64
	// Fixed says that a shorter run has no more tolerance: the metric is an integer,
	// or the limit a law.
	Fixed bool
}

// Kind of a check.
type Kind uint8

const (
	// Near is within Tolerance of Expected.
	Near Kind = iota
	// AtLeast is not below Expected.
	AtLeast
	// AtMost is not above Expected.
	AtMost
)

// within is a relative tolerance.
func within(metric string, expected, part float64) Check {
	return Check{Metric: metric, Expected: expected, Tolerance: math.Abs(expected) * part}
}

// plus is an absolute tolerance.
func plus(metric string, expected, tolerance float64) Check {
	return Check{Metric: metric, Expected: expected, Tolerance: tolerance}
}

// writtenAs is an absolute tolerance for the digits that a figure was written down
// with; chance has no part in it, and no run is too short for it.
func writtenAs(metric string, expected, tolerance float64) Check {
	return Check{Metric: metric, Expected: expected, Tolerance: tolerance, Fixed: true}
}

// between is a range.
func between(metric string, low, high float64) Check {
	return Check{Metric: metric, Expected: (low + high) / 2, Tolerance: (high - low) / 2}
}

func atLeast(metric string, limit float64) Check {
	return Check{Metric: metric, Kind: AtLeast, Expected: limit}
}

func atMost(metric string, limit float64) Check {
	return Check{Metric: metric, Kind: AtMost, Expected: limit}
}

// exactly has no tolerance but for rounding.
func exactly(metric string, expected float64) Check { return Check{Metric: metric, Expected: expected} }

// relax doubles the tolerances: a shorter run is further off. Limits, exact values
// and what is Fixed stay.
func (c Check) relax() Check {
	if !c.Fixed {
		c.Tolerance *= 2
	}
	return c
}

// holds tells whether x is as it should be. Rounding of the last bits counts for
// nothing.
func (c Check) holds(x float64) bool {
	const rounding = 1e-9
	slack := rounding * math.Max(1, math.Abs(c.Expected))
	switch c.Kind {
	case AtLeast:
		return x >= c.Expected-slack
	case AtMost:
		return x <= c.Expected+slack
	}
	return math.Abs(x-c.Expected) <= c.Tolerance+slack
}

// String is the check for people.
func (c Check) String() string {
	switch {
	case c.Kind == AtLeast:
		return fmt.Sprintf("%s >= %s", c.Metric, number(c.Expected))
	case c.Kind == AtMost:
		return fmt.Sprintf("%s <= %s", c.Metric, number(c.Expected))
	case c.Tolerance == 0:
		return fmt.Sprintf("%s = %s", c.Metric, number(c.Expected))
	}
	return fmt.Sprintf("%s %s +- %s", c.Metric, number(c.Expected), strconv.FormatFloat(c.Tolerance, 'g', 2, 64))
}

// Get returns a metric by name.
func (r *Row) Get(metric string) (float64, bool) {
	for _, m := range r.Metrics {
		if m.Name == metric {
			return m.Value, true
		}
	}
	return 0, false
}

// Set adds a metric, or replaces it.
func (r *Row) Set(metric string, x float64) {
	for i := range r.Metrics {
		if r.Metrics[i].Name == metric {
			r.Metrics[i].Value = x
			return
		}
	}
	r.Metrics = append(r.Metrics, Metric{metric, x})
}

// Param returns a setting as a number; false if there is none by that name, or
// it is a text.
func (r *Row) Param(name string) (float64, bool) {
	for _, p := range r.Params {
		if p.Name == name {
			switch v := p.Value.(type) {
			case int:
				return float64(v), true
			case float64:
				return v, true
			}
		}
	}
	return 0, false
}

// flag returns a setting that is true or false; ok is false if there is none by
// that name.
func (r *Row) flag(name string) (value, ok bool) {
	for _, p := range r.Params {
		if p.Name == name {
			value, ok = p.Value.(bool)
		}
	}
	return value, ok
}

// require adds a limit, in place of a lower one of the same metric.
func (r *Row) require(c Check) {
	for i := range r.Checks {
		if o := &r.Checks[i]; o.Metric == c.Metric && o.Kind == AtLeast && c.Kind == AtLeast {
			o.Expected = max(o.Expected, c.Expected)
			return
		}
	}
	r.Checks = append(r.Checks, c)
}

// OK tells whether all checks hold.
func (r *Row) OK() bool {
	for _, c := range r.Checks {
		if x, ok := r.Get(c.Metric); !ok || !c.holds(x) {
			return false
		}
	}
	return true
}

// MarshalJSON writes the row as one object: experiment, the parameters, policy,
// bump, the metrics, then by metric "expected" with "tolerance" (absolute), or
// "min" and "max" where there is a limit, and ok.
func (r Row) MarshalJSON() ([]byte, error) {
	var o object
	o.add("experiment", r.Experiment)
	for _, p := range r.Params {
		o.add(p.Name, p.Value)
	}
	o.add("policy", r.Policy)
	o.add("bump", r.Bump)
	for _, m := range r.Metrics {
		o.add(m.Name, rounded(m.Value))
	}
	var expected, tolerance, least, most object
	for _, c := range r.Checks {
		switch c.Kind {
		case Near:
			expected.add(c.Metric, rounded(c.Expected))
			tolerance.add(c.Metric, rounded(c.Tolerance))
		case AtLeast:
			least.add(c.Metric, rounded(c.Expected))
		case AtMost:
			most.add(c.Metric, rounded(c.Expected))
		}
	}
	o.add("expected", &expected)
	o.add("tolerance", &tolerance)
	o.add("min", &least)
	o.add("max", &most)
	o.add("ok", r.OK())
	return o.MarshalJSON()
}

// object is a JSON object in the order of its making.
type object struct {
	buf bytes.Buffer
	err error
}

func (o *object) add(name string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		o.err = fmt.Errorf("experiment: %s: %w", name, err)
		return
	}
	if o.buf.Len() > 0 {
		o.buf.WriteByte(',')
	}
	fmt.Fprintf(&o.buf, "%q:%s", name, raw)
}

// MarshalJSON implements json.Marshaler.
func (o *object) MarshalJSON() ([]byte, error) {
	return []byte("{" + o.buf.String() + "}"), o.err
}

// rounded keeps nine digits, so that the last bits of another processor's
// logarithm do not show. What is not a number has no place in JSON: nil.
func rounded(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		return x
	}
	return y
}

// number writes x with about four digits, and whole numbers whole.
func number(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e9 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	text := strconv.FormatFloat(x, 'g', 4, 64)
	if math.Abs(x) < 1e-4 {
		return text
	}
	if y, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(y, 'f', -1, 64)
	}
	return text
}
