package httplb

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/topology"
)

// get asks a node for path and returns its report.
func (t *Transport) get(ctx context.Context, n *node, path string) (loadreport.Report, bool) {
	scheme := t.cfg.Scheme
	if scheme == "" {
		scheme = "http"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+n.addr+path, nil)
	if err != nil {
		return loadreport.Report{}, false
	}
	resp, err := n.rt.RoundTrip(req)
	if err != nil {
		return loadreport.Report{}, false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	return loadreport.FromHeader(resp.Header)
}

// warm opens connections at the same time, so that they are different ones.
func (t *Transport) warm(ctx context.Context, n *node) error {
	var all sync.WaitGroup
	for range t.cfg.WarmUp {
		all.Go(func() { t.get(ctx, n, t.cfg.WarmPath) })
	}
	all.Wait()
	return ctx.Err()
}

// probe asks the node for its load in the background, unless it is being asked.
func (t *Transport) probe(id string) {
	topo := t.sdk.Topology()
	if topo == nil {
		return
	}
	i := topo.Index(id)
	if i < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.work.Go(func() { t.ask(topo.Node(i)) })
}

func (t *Transport) ask(n topology.Node) {
	_ = t.pools.One(n, func(_ topology.Node, to *node) error {
		if !to.probing.CompareAndSwap(false, true) {
			return nil
		}
		defer to.probing.Store(false)
		ctx, cancel := context.WithTimeout(t.ctx, t.cfg.ProbeTimeout)
		defer cancel()
		if r, ok := t.get(ctx, to, t.cfg.ProbePath); ok {
			t.cfg.Feed.Take(to.id, r, true)
		}
		return nil
	})
}
