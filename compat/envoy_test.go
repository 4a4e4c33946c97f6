package compat

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// envoyFact is what one of Envoy's own unit tests asserts.
type envoyFact struct {
	Policy    string
	Test      string
	Hosts     json.RawMessage
	Weights   json.RawMessage `json:"normalized_weights"`
	Min       uint32          `json:"minimum_ring_size"`
	Max       uint32          `json:"maximum_ring_size"`
	Ring      [][2]string     // host, place
	Size      int             `json:"ring_size"`
	Least     uint64          `json:"min_hashes_per_host"`
	Most      uint64          `json:"max_hashes_per_host"`
	Picks     [][2]any        `json:"asserted_picks"` // hash, host
	Retries   [][3]any        `json:"retry_picks"`    // hash, attempt, host
	Table     []int
	TableSize uint32 `json:"table_size"`
	Histogram *struct {
		Requests uint64
		Counts   []int
	}
}

// hosts are given one by one, or in words where there are 1024.
func (f envoyFact) hosts(t *testing.T) (names []string, weights []float64) {
	t.Helper()
	if f.Test == "LopsidedWeightSmallScale" {
		for i := range 1024 {
			names, weights = append(names, fmt.Sprintf("127.0.0.1:%d", i)), append(weights, 1.0/128/1023)
		}
		weights[0] = 127.0 / 128
		return names, weights
	}
	if err := json.Unmarshal(f.Hosts, &names); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(f.Weights, &weights); err != nil {
		t.Fatal(err)
	}
	return names, weights
}

func number(t *testing.T, v any) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(v.(string), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEnvoyFacts(t *testing.T) {
	var v struct{ Facts []envoyFact }
	readJSON(t, "envoy", &v)
	rings, tables := 0, 0
	for _, f := range v.Facts {
		switch f.Policy {
		case "ring_hash":
			rings++
			checkEnvoyRing(t, f)
		case "maglev":
			tables++
			names, weights := f.hosts(t)
			if got := envoyMaglevTable(f.TableSize, names, weights); !cmp.Equal(got, f.Table) {
				t.Errorf("%s: table %v, want %v", f.Test, got, f.Table)
			}
		}
	}
	if rings != 7 || tables != 2 {
		t.Errorf("%d rings and %d tables", rings, tables)
	}
}

func checkEnvoyRing(t *testing.T, f envoyFact) {
	t.Helper()
	names, weights := f.hosts(t)
	counts := envoyPointCounts(f.Min, f.Max, weights)
	sum, least, most := 0, uint64(math.MaxUint64), uint64(0)
	for _, c := range counts {
		sum, least, most = sum+int(c), min(least, c), max(most, c)
	}
	if sum != f.Size || least != f.Least || most != f.Most {
		t.Errorf("%s: %d points, %d to %d; want %d, %d to %d", f.Test, sum, least, most, f.Size, f.Least, f.Most)
	}
	var points []ring.Point
	for i, name := range names {
		envoyPoints(topology.Foreign{}, server{name: name}, counts[i], func(place uint64) { points = append(points, ring.Point{Place: place, Owner: uint16(i)}) })
	}
	points = sortPoints(points)
	r, err := ring.FromPoints(len(names), points)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range f.Ring {
		if got := [2]string{names[points[i].Owner], fmt.Sprint(points[i].Place)}; got != want {
			t.Errorf("%s: point %d is %v, want %v", f.Test, i, got, want)
		}
	}
	for _, p := range f.Picks {
		if got := r.Locate(number(t, p[0])); got != int(p[1].(float64)) {
			t.Errorf("%s: hash %v is on %d, want %v", f.Test, p[0], got, p[1])
		}
	}
	for _, p := range f.Retries {
		h, at := number(t, p[0]), 0
		for at < len(points) && points[at].Place < h {
			at++
		}
		if got := points[(at+int(p[1].(float64)))%len(points)].Owner; got != uint16(p[2].(float64)) {
			t.Errorf("%s: hash %v, attempt %v is on %d, want %v", f.Test, p[0], p[1], got, p[2])
		}
	}
	if h := f.Histogram; h != nil {
		got := make([]int, len(names))
		for i := range h.Requests {
			hi, lo := bits.Mul64(i, math.MaxUint64)
			q, _ := bits.Div64(hi, lo, h.Requests)
			got[r.Locate(q)]++
		}
		if !cmp.Equal(got, h.Counts) {
			t.Errorf("%s: %v requests a host, want %v", f.Test, got, h.Counts)
		}
	}
}

// The cases computed by another implementation from Envoy's sources.
func TestEnvoyDerived(t *testing.T) {
	var v struct {
		Derived struct {
			Cases []struct {
				picks
				Policy, Name string
				Hosts        []string
				Weights      []uint32
				Points       []int `json:"points_per_host"`
				Entries      []int `json:"entries_per_host"`
				Head         []int `json:"table_head"`
			}
		} `json:"derived_by_own_reimplementation"`
	}
	readJSON(t, "envoy", &v)
	r := newReplay(t)
	for _, c := range v.Derived.Cases {
		nodes := list(c.Hosts, c.Weights)
		f := topology.Foreign{Mode: map[string]topology.Mode{"ring_hash": topology.ModeEnvoyRing, "maglev": topology.ModeEnvoyMaglev}[c.Policy]}
		r.check(c.Name, f, nodes, c.picks)
		m, counts := r.mapping(c.Name, f, nodes), make([]int, len(nodes))
		if m.Ring != nil {
			for i := range m.Ring.NumPoints() {
				_, owner := m.Ring.Point(i)
				counts[owner]++
			}
			if !cmp.Equal(counts, c.Points) {
				t.Errorf("%s: %v points, want %v", c.Name, counts, c.Points)
			}
			continue
		}
		for i := range m.Modulo.Size() {
			if counts[m.Modulo.Entry(i)]++; i < len(c.Head) && m.Modulo.Entry(i) != c.Head[i] {
				t.Errorf("%s: entry %d is %d, want %d", c.Name, i, m.Modulo.Entry(i), c.Head[i])
			}
		}
		if !cmp.Equal(counts, c.Entries) {
			t.Errorf("%s: %v entries, want %v", c.Name, counts, c.Entries)
		}
	}
	r.done(4 * 867)
}

// Bare numbers through Jump: the paper's C, Guava and Go agree.
func TestJumpVectors(t *testing.T) {
	var v struct{ Vectors [][3]any }
	readJSON(t, "jump", &v)
	for _, x := range v.Vectors {
		key, n, want := number(t, x[0]), int(x[1].(float64)), int(x[2].(float64))
		if got := jump.Hash(key, n); got != want {
			t.Errorf("%d of %d buckets: %d, want %d", key, n, got, want)
		}
	}
	if len(v.Vectors) != 465 {
		t.Errorf("%d vectors", len(v.Vectors))
	}
}
