package rediscache

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/shardd/shardd/topology"
)

// stampMark begins a stamp.
const stampMark = 0xf5

// stampMax is the length of the longest stamp.
const stampMax = 1 + 2*binary.MaxVarintLen64

// stamped returns the value as it is stored by a node that has owned its key since then.
func stamped(since topology.Version, value string) string {
	b := make([]byte, 1, stampMax+len(value))
	b[0] = stampMark
	b = binary.AppendUvarint(b, since.Epoch)
	b = binary.AppendUvarint(b, since.Seq)
	return string(append(b, value...))
}

// unstamp reads a stored value. ok is false without a stamp.
func unstamp(stored string) (since topology.Version, value string, ok bool) {
	if stored == "" || stored[0] != stampMark {
		return since, "", false
	}
	b := []byte(stored[:min(len(stored), stampMax)])
	rest := b[1:]
	for _, to := range []*uint64{&since.Epoch, &since.Seq} {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return topology.Version{}, "", false
		}
		*to, rest = v, rest[n:]
	}
	return since, stored[len(b)-len(rest):], true
}

// open takes a stored value for a hit or, without ok, for a miss; since is when its node
// began to own the key, zero if it does not.
func (c *Cache) open(stored string, since topology.Version) (value string, ok bool) {
	if !c.cfg.Fence {
		return stored, true
	}
	at, value, ok := unstamp(stored)
	switch {
	case !ok && c.cfg.PassUnstamped:
		return stored, true
	case !ok || since.IsZero() || at.Compare(since) < 0:
		c.stats.stale.Add(1)
		return "", false
	}
	return value, true
}

// seal is the value as it is to be stored.
func (c *Cache) seal(value string, since topology.Version) string {
	if !c.cfg.Fence {
		return value
	}
	return stamped(since, value)
}

// absent is what stored values begin with that count as a miss, and how many bytes they
// have: "*" for any number, "" where none does. Of a value with a stamp those of the same
// stamp do, too.
func (op *Op) absent() (begins, size string) {
	if !op.stale {
		return "", ""
	}
	if _, value, ok := unstamp(op.seen); ok {
		return op.seen[:len(op.seen)-len(value)], "*"
	}
	return op.seen[:min(len(op.seen), stampMax)], strconv.Itoa(len(op.seen))
}

// millis is a time to live as PX wants it; 0 is none.
func millis(ttl time.Duration) int64 {
	if ttl <= 0 {
		return 0
	}
	return max(1, ttl.Milliseconds())
}
