package migrate

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// ErrTraffic says that a Traffic cannot be used; the text says why.
var ErrTraffic = errors.New("migrate: bad traffic")

// Traffic is what a Forecast is made for: keys, requests in their order, and
// limits.
type Traffic struct {
	// BytesPerKey is the mean size of a key and its value; 0 = bytes unknown.
	BytesPerKey uint64
	// Bandwidth is what copying may use, in bytes a second over the whole fleet;
	// 0 = time unknown.
	Bandwidth float64
	// CacheKeys is how many keys a node of mean weight holds, the mean being that
	// before the change; least recently used ones leave first; 0 = all.
	CacheKeys int
	// MaxDip is by how much a wave may lower the hit rate, above 0 to 1; 0 = 0.05.
	MaxDip float64

	keys  []string
	index map[string]uint32
	trace []uint32 // requests, as places in keys
	known int      // keys that were listed, the first ones; the rest occur in the trace alone
}

// AddKeys lists keys that are stored; repeated ones count once. Call it before
// AddTrace. It stops at the first error of keys.
func (t *Traffic) AddKeys(keys iter.Seq2[[]byte, error]) error {
	for key, err := range keys {
		if err != nil {
			return err
		}
		t.place(key)
	}
	t.known = len(t.keys)
	return nil
}

// AddTrace adds requests in their order, each for a key. Memory: 4 bytes a
// request and the distinct keys. It stops at the first error.
func (t *Traffic) AddTrace(requests iter.Seq2[[]byte, error]) error {
	for key, err := range requests {
		if err != nil {
			return err
		}
		t.trace = append(t.trace, t.place(key))
	}
	return nil
}

func (t *Traffic) place(key []byte) uint32 {
	if i, ok := t.index[string(key)]; ok {
		return i
	}
	if t.index == nil {
		t.index = map[string]uint32{}
	}
	i := uint32(len(t.keys))
	t.keys = append(t.keys, string(key))
	t.index[t.keys[i]] = i
	return i
}

func (t *Traffic) check() error {
	switch {
	case len(t.keys) == 0:
		return fmt.Errorf("%w: no keys; give a list of keys, or a trace of requests", ErrTraffic)
	case t.CacheKeys < 0:
		return fmt.Errorf("%w: caches of %d keys: want 0 (all) or more", ErrTraffic, t.CacheKeys)
	case !(t.Bandwidth >= 0) || math.IsInf(t.Bandwidth, 1):
		return fmt.Errorf("%w: a bandwidth of %v bytes a second: want 0 (unknown) or more", ErrTraffic, t.Bandwidth)
	case !(t.MaxDip >= 0 && t.MaxDip <= 1):
		return fmt.Errorf("%w: a largest dip of %v: want 0 (5 %%) to 1", ErrTraffic, t.MaxDip)
	}
	return nil
}

// stored returns how many keys count as stored: those listed, or without a list
// those of the trace.
func (t *Traffic) stored() int {
	if t.known > 0 {
		return t.known
	}
	return len(t.keys)
}

// Forecast is what a change would do to a cache fleet under given traffic.
type Forecast struct {
	// KeysMoved is how many stored keys change their owner; Bytes and Seconds are
	// their size, and the time to copy them at the bandwidth; 0 if unknown.
	KeysMoved uint64  `json:"keys_moved"`
	Bytes     uint64  `json:"bytes,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"`
	// RequestsMoved is the share of the requests for them.
	RequestsMoved float64 `json:"requests_moved"`
	// HitRate is that of the second half of the trace without the change, Dip the
	// largest loss against it in a fiftieth of that, if the change is made at once
	// and nothing is copied, and Recovery how many requests it takes until it has
	// lost less than a point; -1 if it does not within the trace.
	HitRate  float64 `json:"hit_rate"`
	Dip      float64 `json:"dip"`
	Recovery int     `json:"recovery_requests"`
	// RequestPeakBefore and RequestPeakAfter are the largest ratio of a node's
	// share of the requests to the share that its weight asks for.
	RequestPeakBefore float64 `json:"request_peak_before"`
	RequestPeakAfter  float64 `json:"request_peak_after"`
	// Waves is in how many equal steps the change keeps each dip within the limit;
	// WaveKeys and WaveBytes are the size of one.
	Waves     int    `json:"waves"`
	WaveKeys  uint64 `json:"wave_keys"`
	WaveBytes uint64 `json:"wave_bytes,omitempty"`
}

// Forecast adds to each row what its change would do under t; from and to are the
// sides that were compared. Errors wrap ErrTraffic.
func (c *Comparison) Forecast(from, to Side, t *Traffic) error {
	if err := t.check(); err != nil {
		return err
	}
	algorithms := compared(from, to)
	if len(c.Rows) != len(algorithms)+1 {
		return fmt.Errorf("%w: a comparison of %d rows, want %d: it is of other sides", ErrTraffic, len(c.Rows), len(algorithms)+1)
	}
	for i, a := range algorithms {
		was, is, err := under(from.Table, to.Table, a)
		if err != nil {
			continue // the row says why
		}
		c.Rows[i].Forecast = t.forecast(tableFleet(was, t), tableFleet(is, t))
	}
	c.Rows[len(algorithms)].Forecast = t.forecast(moduloFleet(from.Table, to.Table, t), moduloFleet(to.Table, to.Table, t))
	return nil
}

// fleet is a mapping over the keys of a traffic.
type fleet struct {
	owner  []uint32 // of each key, as a place among names
	names  []string
	weight []float64 // 1 is the mean of the owners
	mean   float64   // of the owners' weights
	nodes  int       // owners
}

// newFleet returns the nodes of t with the weights by which they own keys.
func newFleet(t *topology.Topology, weigh func(topology.Node) uint32) fleet {
	f := fleet{}
	total := 0.0
	for _, n := range t.Nodes() {
		w := weigh(n)
		f.names = append(f.names, n.ID)
		f.weight = append(f.weight, float64(w))
		if w > 0 {
			f.nodes++
			total += float64(w)
		}
	}
	f.mean = max(1, total) / float64(max(1, f.nodes))
	for i := range f.weight {
		f.weight[i] /= f.mean
	}
	return f
}

func tableFleet(table *placement.Table, t *Traffic) fleet {
	f := newFleet(table.Topology(), table.Topology().Spec().OwnerWeight)
	var buf []int
	for _, key := range t.keys {
		if buf = table.AppendNodes(buf[:0], []byte(key), 1); len(buf) == 0 {
			return fleet{}
		}
		f.owner = append(f.owner, uint32(buf[0]))
	}
	return f
}

// moduloFleet is hash(key) mod owners of nodes, in the order of their ids. The hash
// is that of the same table on both sides: what is compared is a change of nodes. It
// is mixed: the 32-bit hashes of other systems stand in the top bits, with 0 below,
// where modulo looks.
func moduloFleet(nodes, hash *placement.Table, t *Traffic) fleet {
	f := newFleet(nodes.Topology(), topology.Node.OwnerWeight)
	var places []uint32
	for i, w := range f.weight {
		if w > 0 {
			places = append(places, uint32(i))
		}
	}
	if len(places) == 0 {
		return fleet{}
	}
	for _, key := range t.keys {
		f.owner = append(f.owner, places[splitmix.Mix(hash.Hash(key))%uint64(len(places))])
	}
	return f
}

// moved tells whether key k has another owner after the change.
func moved(before, after *fleet, k uint32) bool {
	return before.names[before.owner[k]] != after.names[after.owner[k]]
}

// forecast returns nil if there are no owners on a side.
func (t *Traffic) forecast(before, after fleet) *Forecast {
	if before.nodes == 0 || after.nodes == 0 {
		return nil
	}
	f := &Forecast{}
	stored := uint32(t.stored())
	for k := range stored {
		if moved(&before, &after, k) {
			f.KeysMoved++
		}
	}
	share := float64(f.KeysMoved) / float64(stored)
	f.HitRate = 1
	if len(t.trace) > 0 {
		count := 0
		for _, k := range t.trace {
			if moved(&before, &after, k) {
				count++
			}
		}
		f.RequestsMoved = float64(count) / float64(len(t.trace))
		f.RequestPeakBefore, f.RequestPeakAfter = t.peak(&before), t.peak(&after)
		t.replay(f, &before, &after)
		share = f.RequestsMoved * f.HitRate
	}
	f.Bytes = f.KeysMoved * t.BytesPerKey
	if t.Bandwidth > 0 {
		f.Seconds = float64(f.Bytes) / t.Bandwidth
	}
	limit := t.MaxDip
	if limit == 0 {
		limit = 0.05
	}
	f.Waves = max(1, int(math.Ceil(max(share, f.Dip)/limit-1e-9)))
	f.WaveKeys = (f.KeysMoved + uint64(f.Waves) - 1) / uint64(f.Waves)
	f.WaveBytes = f.WaveKeys * t.BytesPerKey
	return f
}

// peak returns the largest ratio of a node's requests to those that its weight
// asks for.
func (t *Traffic) peak(f *fleet) float64 {
	count := make([]float64, len(f.names))
	for _, k := range t.trace {
		count[f.owner[k]]++
	}
	most := 0.0
	for i, x := range count {
		if f.weight[i] > 0 {
			most = max(most, x/f.weight[i])
		}
	}
	return most * float64(f.nodes) / float64(len(t.trace))
}
