package shardtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// errAway is what a watch ends with while the plane is away.
var errAway = errors.New("shardtest: the control plane is away")

// confirmEvery is how often a watch says that what is held is the newest.
const confirmEvery = time.Second

// watch is one client's watch.
type watch struct {
	held   topology.Ref // what the client holds
	seen   topology.Ref // what was offered or reported last
	end    context.CancelCauseFunc
	offers chan offer
}

// offer is a topology that is presented whatever the law says.
type offer struct {
	topology *topology.Topology
	answer   chan error
}

var _ sdk.Source = (*Plane)(nil)

// Watch is sdk.Source.Watch. Clients call it; give the plane to sdk.New.
func (p *Plane) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	watching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &watch{held: have, end: cancel, offers: make(chan offer)}
	if err := p.enter(w); err != nil {
		return err
	}
	defer p.leave(w)
	tick := time.NewTicker(confirmEvery)
	defer tick.Stop()
	for {
		next, wait, changed := p.next(w)
		if next != nil {
			p.deliver(watching, w, next, fn)
			continue
		}
		var due <-chan time.Time
		timer := time.NewTimer(wait) // 0 = nothing is due
		if wait > 0 {
			due = timer.C
		}
		select {
		case <-watching.Done():
			timer.Stop()
			return context.Cause(watching)
		case <-changed:
		case <-due:
		case <-tick.C:
			p.confirm(w, fn)
		case o := <-w.offers:
			o.answer <- p.present(w, o.topology, fn)
		}
		timer.Stop()
	}
}

func (p *Plane) enter(w *watch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return errAway
	}
	p.watches[w] = struct{}{}
	p.tell()
	return nil
}

func (p *Plane) leave(w *watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, w)
	p.tell()
}

// next returns what is to be delivered to w now, or how long it takes until a
// version is due (0 = none is), and a channel that is closed on a change.
func (p *Plane) next(w *watch) (*topology.Topology, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, wait := p.due()
	if last < 0 {
		return nil, wait, p.changed
	}
	if t := p.line[last].topology; t.Ref() != w.seen {
		return t, 0, nil
	}
	return nil, wait, p.changed
}

// due returns the index of the newest version that may be delivered, -1 for none,
// and the time until the next one may.
func (p *Plane) due() (last int, wait time.Duration) {
	n := len(p.line)
	if p.held >= 0 {
		n = min(n, p.held)
	}
	now := time.Now()
	for last = n - 1; last >= 0 && p.line[last].due.After(now); last-- {
		wait = p.line[last].due.Sub(now)
	}
	return last, wait
}

// deliver offers t if it continues what the client holds, and reports otherwise.
func (p *Plane) deliver(ctx context.Context, w *watch, t *topology.Topology, fn func(*topology.Topology) error) {
	if err := p.continues(w.held, t); err != nil {
		sdk.Report(ctx, err)
		p.saw(w, t.Ref())
		return
	}
	_ = p.present(w, t, fn) // a refusal is the client's to tell
	p.saw(w, t.Ref())
}

// present calls fn and notes what came of it.
func (p *Plane) present(w *watch, t *topology.Topology, fn func(*topology.Topology) error) error {
	err := fn(t)
	if err == nil {
		p.mu.Lock()
		w.held = t.Ref()
		p.mu.Unlock()
	}
	return err
}

func (p *Plane) saw(w *watch, ref topology.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.seen = ref
	p.tell()
}

func (p *Plane) confirm(w *watch, fn func(*topology.Topology) error) {
	p.mu.Lock()
	newest := w.held == p.table.Topology().Ref() && p.held < 0
	p.mu.Unlock()
	if newest {
		_ = fn(nil) // confirms; there is nothing to refuse
	}
}

// continues says why t must not be delivered to whoever holds have: the law of
// sdk.Source.
func (p *Plane) continues(have topology.Ref, t *topology.Topology) error {
	if have.IsZero() || have.ClusterID != t.ClusterID() || have.Version.Epoch < t.Version().Epoch {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.line {
		if v.topology.Ref() == have && have.Version.Compare(t.Version()) <= 0 {
			return nil
		}
	}
	if have.Version.Compare(t.Version()) > 0 {
		return fmt.Errorf("shardtest: %w: %s is held, the newest is %s", sdk.ErrOlder, have, t.Ref())
	}
	return fmt.Errorf("shardtest: %w: %s is not in the line of %s", sdk.ErrForked, have, t.Ref())
}

// Clients returns how many clients watch at the moment.
func (p *Plane) Clients() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watches)
}

// Held returns what each client that watches goes by, in no order.
func (p *Plane) Held() []topology.Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	var refs []topology.Ref
	for w := range p.watches {
		refs = append(refs, w.held)
	}
	return refs
}

// Settle waits until every client that watches has been told of the newest
// version that is not held back, or ctx ends, whose error it returns. Publish and
// the others do so themselves.
func (p *Plane) Settle(ctx context.Context) error {
	for {
		behind, changed := p.behind()
		if !behind {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Plane) behind() (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, _ := p.due()
	if last < 0 {
		return false, p.changed
	}
	for w := range p.watches {
		if w.seen != p.line[last].topology.Ref() {
			return true, p.changed
		}
	}
	return false, p.changed
}
