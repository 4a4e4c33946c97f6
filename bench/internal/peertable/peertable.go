// Package peertable is what the comparison with other libraries finds: its JSON
// form, which one program writes and another one reads, and its tables.
package peertable

import (
	"fmt"
	"strconv"

	"github.com/shardd/shardd/bench/internal/page"
)

// Report is one run.
type Report struct {
	// Command and Machine say how the figures came about.
	Command string `json:"command"`
	Machine string `json:"machine"`
	// Keys and Pairs are the number of keys and of interleaved pairs a speed
	// was measured with.
	Keys       int         `json:"keys"`
	Pairs      int         `json:"pairs"`
	Placements []Placement `json:"placements"`
	Pickers    []Picker    `json:"pickers"`
}

// Placement is one mapping at one number of nodes.
type Placement struct {
	Subject string `json:"subject"`
	Family  string `json:"family"`
	Ours    bool   `json:"ours"`
	Nodes   int    `json:"nodes"`
	// Left is why this size was left out; everything below is then absent.
	Left string `json:"left,omitempty"`
	Note string `json:"note,omitempty"`
	// Speed is measured, and differs from run to run.
	Speed *Speed `json:"speed,omitempty"`
	// Exact is a count, the same in every run.
	Exact *Exact `json:"exact,omitempty"`
}

// Speed is what a mapping costs.
type Speed struct {
	Key    float64 `json:"ns_key"` // nanoseconds a lookup, hash and name included
	Ratio  float64 `json:"ratio"`  // the same as a multiple of the floor
	Allocs float64 `json:"allocs"` // heap allocations a lookup
	Build  float64 `json:"build_ms"`
	Add    float64 `json:"add_ms"`
	Remove float64 `json:"remove_ms"`
	Bytes  int64   `json:"bytes"` // of heap that the mapping keeps
}

// Exact is how a mapping spreads and moves a list of keys.
type Exact struct {
	Keys int     `json:"keys"`
	Peak float64 `json:"peak"` // largest count over mean
	CV   float64 `json:"cv"`   // of the counts, the sample's own noise taken out
	// Add and Remove are the share of keys that moved when one node left, and
	// when another came after it, as multiples of the minimum, 1/N.
	Add    float64 `json:"add"`
	Remove float64 `json:"remove"`
	// Needless is the part of both that went between unchanged nodes, as a
	// multiple of both minima.
	Needless float64 `json:"needless"`
}

// Picker is one policy at one number of nodes.
type Picker struct {
	Subject string `json:"subject"`
	Ours    bool   `json:"ours"`
	Nodes   int    `json:"nodes"`
	// Clock is who reads the clock: "no", "argument" (a number is passed in),
	// "caller" (the loop reads it twice a request), "inside" (the policy does).
	Clock  string  `json:"clock"`
	Pick   float64 `json:"ns_pick"` // nanoseconds for Pick and Done
	Ratio  float64 `json:"ratio"`   // the same as a multiple of the least
	Allocs float64 `json:"allocs"`  // heap allocations for Pick and Done
	Two    float64 `json:"two"`     // picks a second of two goroutines over one's
	Worked float64 `json:"worked"`  // the same with 1 µs of work a pick; 0 = not measured
	Left   string  `json:"left,omitempty"`
	Note   string  `json:"note,omitempty"`
}

// PlacementTable returns the table of mappings with that many nodes.
func (r Report) PlacementTable(nodes int) page.Table {
	t := page.Table{Header: []string{"N = " + count(nodes), "x floor", "ns", "allocs", "build ms", "bytes",
		"add ms", "remove ms", "peak", "cv", "add x min", "remove x min", "needless"}}
	for _, p := range r.Placements {
		if p.Nodes != nodes || p.Speed == nil {
			continue
		}
		s := p.Speed
		row := []string{name(p.Subject, p.Ours), Ratio(s.Ratio), Ratio(s.Key), allocs(s.Allocs), Ratio(s.Build), bytes(s.Bytes),
			Ratio(s.Add), Ratio(s.Remove)}
		t.Add(append(row, p.Exact.cells()...)...)
	}
	return t
}

// ExactTable is the part of PlacementTable that is the same in every run.
func (r Report) ExactTable(nodes int) page.Table {
	t := page.Table{Header: []string{"N = " + count(nodes), "peak", "cv", "add x min", "remove x min", "needless"}}
	for _, p := range r.Placements {
		if p.Nodes == nodes && p.Exact != nil {
			t.Add(append([]string{name(p.Subject, p.Ours)}, p.Exact.cells()...)...)
		}
	}
	return t
}

func (e *Exact) cells() []string {
	if e == nil {
		return []string{"", "", "", "", ""}
	}
	f := func(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
	return []string{f(e.Peak, 3), f(e.CV, 3), f(e.Add, 2), f(e.Remove, 2), f(e.Needless, 2)}
}

// Left lists what was left out and why, one sentence each.
func (r Report) Left() []string {
	var list []string
	for _, p := range r.Placements {
		if p.Left != "" {
			list = append(list, fmt.Sprintf("%s at N = %s: %s", p.Subject, count(p.Nodes), p.Left))
		}
	}
	for _, p := range r.Pickers {
		if p.Left != "" {
			list = append(list, fmt.Sprintf("%s at n = %s: %s", p.Subject, count(p.Nodes), p.Left))
		}
	}
	return list
}

// Notes lists what a reader of the tables must know of each subject, once.
func (r Report) Notes() []string {
	var list []string
	seen := map[string]bool{}
	note := func(subject, text string) {
		if text != "" && !seen[subject] {
			seen[subject] = true
			list = append(list, subject+": "+text)
		}
	}
	for _, p := range r.Placements {
		note(p.Subject, p.Note)
	}
	for _, p := range r.Pickers {
		note(p.Subject, p.Note)
	}
	return list
}

// Sizes returns the numbers of nodes in the report's placements, ascending as
// they were measured.
func (r Report) Sizes() []int {
	var sizes []int
	seen := map[int]bool{}
	for _, p := range r.Placements {
		if !seen[p.Nodes] {
			seen[p.Nodes] = true
			sizes = append(sizes, p.Nodes)
		}
	}
	return sizes
}

// PickerTable returns the table of policies.
func (r Report) PickerTable() page.Table {
	t := page.Table{Header: []string{"policy", "clock", "n", "ns", "x least", "allocs", "two / one", "two / one, 1 µs"}}
	for _, p := range r.Pickers {
		if p.Left != "" {
			continue
		}
		worked := ""
		if p.Worked > 0 {
			worked = Ratio(p.Worked)
		}
		t.Add(name(p.Subject, p.Ours), p.Clock, count(p.Nodes), Ratio(p.Pick), Ratio(p.Ratio), allocs(p.Allocs), Ratio(p.Two), worked)
	}
	return t
}

// name marks what is ours.
func name(subject string, ours bool) string {
	if ours {
		return "**" + subject + "**"
	}
	return subject
}

// Ratio writes x with about three digits.
func Ratio(x float64) string {
	switch {
	case x >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= .0995 || x == 0:
		return strconv.FormatFloat(x, 'f', 2, 64)
	default:
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
}

func allocs(x float64) string {
	if x == float64(int(x)) {
		return strconv.Itoa(int(x))
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// bytes writes a size in KiB or MiB.
func bytes(n int64) string {
	switch {
	case n < 1<<10:
		return "< 1 KiB"
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", (n+1<<9)>>10)
	default:
		return fmt.Sprintf("%d MiB", (n+1<<19)>>20)
	}
}

// count writes n with a comma for the thousands.
func count(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
