package server

import (
	"context"
	"time"

	"github.com/shardd/shardd/membership"
)

// confirm keeps what is said of the nodes' health honest: clients take every
// heartbeat of a watch for its renewal, so it must not outlive the word of the
// leader. A key that goes tells of itself; a store that is out of reach does not, so
// while nodes are bad it is asked, every timeout, and after two without an answer
// nobody is told any more. Without bad nodes it costs nothing.
func (h *hub) confirm(ctx context.Context) {
	confirmed := time.Now()
	for pause(ctx, h.timeout) == nil {
		v, _, err := h.look()
		if err != nil || v == nil || !v.doubted && (v.state.Overlay == nil || len(v.state.Overlay.Bad) == 0) {
			confirmed = time.Now()
			continue
		}
		asking, cancel := context.WithTimeout(ctx, h.timeout)
		st, err := h.store.Load(asking)
		cancel()
		switch {
		case err == nil && st.ID == v.state.ID:
			confirmed = time.Now()
			h.lay(v, st.Overlay, false)
		case err != nil && !v.doubted && time.Since(confirmed) >= 2*h.timeout:
			h.logger.Warn("health of the nodes cannot be confirmed and is not told any more", "bad", v.state.Overlay.Bad, "error", err)
			h.lay(v, nil, true)
		}
	}
}

// lay makes o what v says of the nodes' health, unless v is not the view any more:
// then what came is newer.
func (h *hub) lay(v *view, o *membership.Overlay, doubted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.view != v || v.doubted == doubted && v.state.Overlay.Equal(o) {
		return
	}
	st := v.state
	st.Overlay = o
	next := newView(st, v.line, v.lineErr)
	next.sore, next.doubted, next.message, next.table = v.sore, doubted, v.message, v.table
	h.view = next
	h.wake()
}
