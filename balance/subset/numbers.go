package subset

import (
	"sync"
	"time"

	"github.com/shardd/shardd/balance"
)

// Numbers gives clients the numbers that Deterministic wants: each holder has
// one, the smallest that was free when it came, for as long as it renews its
// lease. It is safe for concurrent use.
type Numbers struct {
	ttl time.Duration

	mu      sync.Mutex
	holders map[string]lease
	taken   []bool
}

type lease struct {
	number int
	until  time.Duration
}

// NewNumbers returns a register whose leases last for ttl after each renewal;
// 0 is for ever, until Release. A negative ttl is refused with
// balance.ErrInvalid.
func NewNumbers(ttl time.Duration) (*Numbers, error) {
	if ttl < 0 {
		return nil, balance.Invalidf("subset: leases of %v; give 0 or more", ttl)
	}
	return &Numbers{ttl: ttl, holders: map[string]lease{}}, nil
}

// Lease returns the number of holder, a new one if it has none or its lease
// ended, and renews it. Leases that ended are freed first. O(holders).
func (n *Numbers) Lease(holder string, now time.Duration) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for h, l := range n.holders {
		if n.ttl > 0 && now > l.until {
			n.free(h)
		}
	}
	l, ok := n.holders[holder]
	if !ok {
		l.number = SmallestFree(n.taken)
		if l.number == len(n.taken) {
			n.taken = append(n.taken, false)
		}
		n.taken[l.number] = true
	}
	l.until = now + n.ttl
	n.holders[holder] = l
	return l.number
}

// Release frees the number of holder, if it has one.
func (n *Numbers) Release(holder string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free(holder)
}

func (n *Numbers) free(holder string) {
	if l, ok := n.holders[holder]; ok {
		n.taken[l.number] = false
		delete(n.holders, holder)
	}
}

// SmallestFree returns the smallest index that is not taken, len(taken) if all
// are.
func SmallestFree(taken []bool) int {
	for i, t := range taken {
		if !t {
			return i
		}
	}
	return len(taken)
}
