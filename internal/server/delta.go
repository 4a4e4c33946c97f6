package server

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/topology"
)

// What a hub keeps of the versions it has served, to make deltas from them.
const (
	keptBases     = 64
	keptBaseBytes = 32 << 20 // about, in memory
)

// readBase is how long a watch waits for the store to bring an earlier version,
// before it sends the newest one whole.
const readBase = time.Second

// bases are the versions that clients may hold, oldest first.
type bases struct {
	kept  []*topology.Topology
	bytes int
}

func (b *bases) add(t *topology.Topology) {
	if b.get(t.Digest()) != nil {
		return
	}
	b.kept, b.bytes = append(b.kept, t), b.bytes+weigh(t)
	for len(b.kept) > 1 && (len(b.kept) > keptBases || b.bytes > keptBaseBytes) {
		b.bytes -= weigh(b.kept[0])
		b.kept = append(b.kept[:0:0], b.kept[1:]...)
	}
}

// weigh is about what t takes in memory: nodes and encoding, and for each table
// encoding and entries.
func weigh(t *topology.Topology) int {
	n := 3 * len(t.Encode())
	for _, o := range t.Objects() {
		n += len(o.Encode()) + 2*o.Rows()*o.Size()
	}
	return n
}

func (b *bases) get(d topology.Digest) *topology.Topology {
	for _, t := range b.kept {
		if t.Digest() == d {
			return t
		}
	}
	return nil
}

// deltas are the delta messages that lead to one view, made when the first
// client asks, one for each version that clients hold.
type deltas struct {
	mu    sync.Mutex
	lines map[topology.Digest]func() []byte
}

// line returns the message from base, or nil: there is none, or too many others
// were asked for.
func (d *deltas) line(base topology.Digest, compose func() []byte) []byte {
	d.mu.Lock()
	f := d.lines[base]
	if f == nil {
		f = sync.OnceValue(compose)
		if len(d.lines) == 2*keptBases {
			d.mu.Unlock()
			return nil
		}
		if d.lines == nil {
			d.lines = make(map[topology.Digest]func() []byte)
		}
		d.lines[base] = f
	}
	d.mu.Unlock()
	return f()
}

// delta returns the message that brings a client from the version it holds to
// v's, or nil if that version is not kept or the whole one is not longer.
func (h *hub) delta(v *view, held topology.Digest, version topology.Version) []byte {
	return v.deltas.line(held, func() []byte {
		base := h.base(held, version)
		if base == nil {
			return nil
		}
		line, err := deltaMessage(base, v.state.Head)
		if err != nil {
			h.logger.Debug("no delta", "from", base.Version(), "to", v.head().Version, "error", err)
			return nil
		}
		if whole, err := v.message(); err == nil && len(whole)+newTables(base, v.state.Head) <= len(line) {
			return nil
		}
		return line
	})
}

// newTables is the length of the tables that a client which holds base would have
// to fetch after target came whole.
func newTables(base, target *topology.Topology) (n int) {
	for _, ref := range target.Refs() {
		if !slices.Contains(base.Refs(), ref) {
			n += int(ref.Length)
		}
	}
	return n
}

func deltaMessage(base, target *topology.Topology) ([]byte, error) {
	d, err := topology.Diff(base, target)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(api.Message{Type: api.MessageDelta, ClusterID: target.ClusterID(), Version: target.Version(),
		Digest: target.Digest(), Base: base.Digest(), Encoded: d.Encode()})
	return append(line, '\n'), err
}

// base returns the version of this digest, from memory or from those that the
// store keeps, or nil.
func (h *hub) base(held topology.Digest, version topology.Version) *topology.Topology {
	h.mu.Lock()
	t := h.bases.get(held)
	h.mu.Unlock()
	if t != nil || version.IsZero() {
		return t
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(readBase, h.timeout))
	defer cancel()
	t, err := h.store.Version(ctx, version)
	if err != nil || t.Digest() != held {
		return nil
	}
	return t
}
