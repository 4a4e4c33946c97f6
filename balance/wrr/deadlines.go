package wrr

// Bounds that keep deadlines finite: 1 / a smaller weight, or a larger power of
// the requests in flight, could be infinite, and then nobody's turn comes.
const (
	leastWeight = 0x1p-64
	mostLoad    = 0x1p64
)

// deadline is a node's next turn.
type deadline struct {
	at   float64
	node int32
}

// deadlines is a binary heap by (at, node); the rule has no other state.
type deadlines []deadline

func (h deadlines) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].node < h[j].node
}

func (h deadlines) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// down lets element i sink to its place.
func (h deadlines) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if right := least + 1; right < len(h) && h.less(right, least) {
			least = right
		}
		if !h.less(least, i) {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
