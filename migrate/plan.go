package migrate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"github.com/shardd/shardd/placement"
)

// Plan says what a change moves. Its JSON form:
//
//	{"from","to","movement":{"ratio","minimum","minimum_realised","excess",
//	  "between_unchanged","remapped","method","interval"},
//	 "nodes":[{"id","before","after","in","out"}],"flows":[{"from","to","share"}],
//	 "flows_omitted","cause","optimal",...,
//	 "keys":{"total","moved","ratio","copies"},"bytes"}
//
// "from" and "to" are published versions, or the names of cluster files; keys
// and bytes are there if they were counted. Shares are of the key space, 0..1.
type Plan struct {
	From, To Side
	Report   placement.Report
	// Peaks are the largest ratio of a node's share to the share that its
	// weight asks for; 1 = perfect, 0 = no owners.
	PeakBefore, PeakAfter float64
	// Keys is what moves of a list of keys; nil = none was given.
	Keys *KeyCount
	// BytesPerKey is the size that Bytes counts for each copy; 0 = not given.
	BytesPerKey uint64
}

// New plans the change from one side to the other. Flows are cut at maxFlows;
// 0 = 1000, -1 = all.
func New(from, to Side, maxFlows int) (*Plan, error) {
	report, err := placement.MovementWith(from.Table, to.Table, placement.MovementOptions{MaxFlows: maxFlows})
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return &Plan{From: from, To: to, Report: report, PeakBefore: from.Table.Peak(), PeakAfter: to.Table.Peak()}, nil
}

// Bytes returns how many bytes must be copied: the copies of listed keys that
// move, times BytesPerKey, at most 2^64 - 1. ok is false where either was not
// given.
func (p *Plan) Bytes() (n uint64, ok bool) {
	if p.Keys == nil || p.BytesPerKey == 0 {
		return 0, false
	}
	if high, low := bits.Mul64(p.Keys.Copies, p.BytesPerKey); high == 0 {
		return low, true
	}
	return math.MaxUint64, true
}

// MarshalJSON writes the form that is shown at Plan.
func (p *Plan) MarshalJSON() ([]byte, error) {
	v := struct {
		From string `json:"from"`
		To   string `json:"to"`
		placement.Report
		PeakBefore float64   `json:"peak_before"`
		PeakAfter  float64   `json:"peak_after"`
		Keys       *KeyCount `json:"keys,omitempty"`
		Bytes      *uint64   `json:"bytes,omitempty"`
	}{From: p.From.String(), To: p.To.String(), Report: p.Report, PeakBefore: p.PeakBefore, PeakAfter: p.PeakAfter, Keys: p.Keys}
	if n, ok := p.Bytes(); ok {
		v.Bytes = &n
	}
	return json.Marshal(v)
}
