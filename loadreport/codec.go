package loadreport

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrReport says that a report cannot be read. Go on without it.
var ErrReport = errors.New("loadreport: not a load report")

// maxNamed is the most named metrics that are taken from a report.
const maxNamed = 256

// The fields of xds.data.orca.v3.OrcaLoadReport.
const (
	fieldCPU         = 1
	fieldMemory      = 2
	fieldUtilization = 5 // map
	fieldQPS         = 6
	fieldEPS         = 7
	fieldNamed       = 8 // map
	fieldApplication = 9
)

// Text returns ORCA's TEXT form, with the names in order.
func (r Report) Text() string {
	b := make([]byte, 0, 128)
	b = append(b, "TEXT"...)
	sep := " "
	add := func(name string, v float64) {
		if v == 0 && !strings.HasSuffix(name, metricInFlight) || math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		b = append(append(append(b, sep...), name...), '=')
		b = strconv.AppendFloat(b, v, 'g', 6, 64)
		sep = ","
	}
	add("cpu_utilization", r.CPU)
	add("mem_utilization", r.Memory)
	add("application_utilization", r.Utilization)
	add("rps_fractional", r.QPS)
	add("eps", r.EPS)
	named := r.named()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if validName(name) {
			add("named_metrics."+name, named[name])
		}
	}
	return string(b)
}

// Parse reads a header in ORCA's forms: "TEXT name=value,...", "JSON {...}" or "BIN
// base64". Names that are not known are passed over. Errors: ErrReport.
func Parse(v string) (Report, error) {
	form, rest, _ := strings.Cut(v, " ")
	switch form {
	case "TEXT":
		return parseText(rest)
	case "JSON":
		return parseJSON(rest)
	case "BIN":
		return parseBase64(rest)
	}
	return Report{}, fmt.Errorf("%w: it begins with %.20q", ErrReport, form)
}

func parseText(v string) (Report, error) {
	var r Report
	n := 0
	for pair := range strings.SplitSeq(v, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		f, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil || !usable(f) {
			return Report{}, fmt.Errorf("%w: %.40q", ErrReport, pair)
		}
		if n++; n > maxNamed {
			return Report{}, fmt.Errorf("%w: more than %d values", ErrReport, maxNamed)
		}
		r.take(name, f)
	}
	return r, nil
}

func usable(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// take takes a value by its name in TEXT.
func (r *Report) take(name string, v float64) {
	switch name {
	case "cpu_utilization":
		r.CPU = v
	case "mem_utilization":
		r.Memory = v
	case "application_utilization":
		r.Utilization = v
	case "rps_fractional":
		r.QPS = v
	case "eps":
		r.EPS = v
	default:
		if named, ok := strings.CutPrefix(name, "named_metrics."); ok {
			r.set(named, v)
		} else if named, ok := strings.CutPrefix(name, "utilization."); ok {
			r.set(named, v)
		}
	}
}

func parseJSON(v string) (Report, error) {
	var j struct {
		CPU         float64            `json:"cpu_utilization"`
		Memory      float64            `json:"mem_utilization"`
		Application float64            `json:"application_utilization"`
		QPS         float64            `json:"rps_fractional"`
		EPS         float64            `json:"eps"`
		Utilization map[string]float64 `json:"utilization"`
		Named       map[string]float64 `json:"named_metrics"`
	}
	if err := json.Unmarshal([]byte(v), &j); err != nil {
		return Report{}, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if len(j.Named)+len(j.Utilization) > maxNamed {
		return Report{}, fmt.Errorf("%w: more than %d values", ErrReport, maxNamed)
	}
	r := Report{CPU: j.CPU, Memory: j.Memory, Utilization: j.Application, QPS: j.QPS, EPS: j.EPS}
	for name, f := range j.Utilization {
		r.set(name, f)
	}
	for name, f := range j.Named {
		r.set(name, f)
	}
	return r, nil
}

func parseBase64(v string) (Report, error) {
	b, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		if b, err = base64.RawStdEncoding.DecodeString(v); err != nil {
			return Report{}, fmt.Errorf("%w: %w", ErrReport, err)
		}
	}
	return Unmarshal(b)
}

// Marshal returns the binary form: xds.data.orca.v3.OrcaLoadReport.
func (r Report) Marshal() []byte {
	var b []byte
	add := func(field protowire.Number, v float64) {
		if v != 0 && usable(v) {
			b = protowire.AppendTag(b, field, protowire.Fixed64Type)
			b = protowire.AppendFixed64(b, math.Float64bits(v))
		}
	}
	add(fieldCPU, r.CPU)
	add(fieldMemory, r.Memory)
	add(fieldQPS, r.QPS)
	add(fieldEPS, r.EPS)
	named := r.named()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !usable(named[name]) {
			continue
		}
		e := protowire.AppendTag(nil, 1, protowire.BytesType)
		e = protowire.AppendString(e, name)
		e = protowire.AppendTag(e, 2, protowire.Fixed64Type)
		e = protowire.AppendFixed64(e, math.Float64bits(named[name]))
		b = protowire.AppendTag(b, fieldNamed, protowire.BytesType)
		b = protowire.AppendBytes(b, e)
	}
	add(fieldApplication, r.Utilization)
	return b
}

// Unmarshal reads the binary form. Fields that are not known are passed over. It
// never panics. Errors: ErrReport.
func Unmarshal(b []byte) (Report, error) {
	var r Report
	for n := 0; len(b) > 0; {
		field, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return Report{}, fmt.Errorf("%w: %w", ErrReport, protowire.ParseError(size))
		}
		b = b[size:]
		switch {
		case kind == protowire.Fixed64Type:
			bits, size := protowire.ConsumeFixed64(b)
			if size < 0 {
				return Report{}, fmt.Errorf("%w: %w", ErrReport, protowire.ParseError(size))
			}
			r.number(field, math.Float64frombits(bits))
			b = b[size:]
		case kind == protowire.BytesType && (field == fieldNamed || field == fieldUtilization):
			e, size := protowire.ConsumeBytes(b)
			if size < 0 {
				return Report{}, fmt.Errorf("%w: %w", ErrReport, protowire.ParseError(size))
			}
			if n++; n > maxNamed {
				return Report{}, fmt.Errorf("%w: more than %d values", ErrReport, maxNamed)
			}
			if err := r.entry(e); err != nil {
				return Report{}, err
			}
			b = b[size:]
		default:
			size := protowire.ConsumeFieldValue(field, kind, b)
			if size < 0 {
				return Report{}, fmt.Errorf("%w: %w", ErrReport, protowire.ParseError(size))
			}
			b = b[size:]
		}
	}
	return r, nil
}

func (r *Report) number(field protowire.Number, v float64) {
	if !usable(v) {
		return
	}
	switch field {
	case fieldCPU:
		r.CPU = v
	case fieldMemory:
		r.Memory = v
	case fieldQPS:
		r.QPS = v
	case fieldEPS:
		r.EPS = v
	case fieldApplication:
		r.Utilization = v
	}
}

// entry reads one entry of a map.
func (r *Report) entry(b []byte) error {
	var name string
	var value float64
	for len(b) > 0 {
		field, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return fmt.Errorf("%w: %w", ErrReport, protowire.ParseError(size))
		}
		b = b[size:]
		switch {
		case field == 1 && kind == protowire.BytesType:
			name, size = protowire.ConsumeString(b)
		case field == 2 && kind == protowire.Fixed64Type:
			var bits uint64
			bits, size = protowire.ConsumeFixed64(b)
			value = math.Float64frombits(bits)
		default:
			size = protowire.ConsumeFieldValue(field, kind, b)
		}
		if size < 0 {
			return fmt.Errorf("%w: %w", ErrReport, protowire.ParseError(size))
		}
		b = b[size:]
	}
	if usable(value) {
		r.set(name, value)
	}
	return nil
}
