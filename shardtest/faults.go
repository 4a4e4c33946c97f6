package shardtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Delay lets every version that is published from now on arrive d later; 0 ends
// that. Publish does not wait for it, and neither does Settle.
func (p *Plane) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = max(0, d)
}

// Hold keeps versions that are published from now on back until release is
// called, as a watch does that hangs without an error. release waits until they
// have arrived and may be called more than once. While several hold, each has to
// release.
func (p *Plane) Hold() (release func()) {
	p.mu.Lock()
	if p.holds++; p.holds == 1 {
		p.held = len(p.line)
	}
	p.mu.Unlock()
	var once sync.Once
	return func() {
		once.Do(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.holds--; p.holds == 0 {
				p.held = -1
				p.tell()
			}
		})
		_ = p.Settle(context.Background()) // which does not end
	}
}

// Drop ends every watch with an error. Clients report it and come back by
// themselves, within a second.
func (p *Plane) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watches {
		w.end(errors.New("shardtest: the watch was dropped"))
	}
}

// Away makes the plane unreachable, or reachable again: watches end, and new ones
// fail. Versions can be published meanwhile; clients get the newest when they are
// back, within a second.
func (p *Plane) Away(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
	if away {
		for w := range p.watches {
			w.end(errAway)
		}
	}
}

// GoBack makes version v, which the plane published, the newest again, as
// restoring a backup of the store does. Clients that are further on stay there
// and report sdk.ErrOlder; what is published next has another digest than what
// they hold, and they report sdk.ErrForked until RaiseEpoch.
func (p *Plane) GoBack(v topology.Version) {
	p.t.Helper()
	p.publishing.Lock()
	defer p.publishing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, old := range p.line {
		if old.topology.Version() != v {
			continue
		}
		table, err := placement.New(old.topology)
		if err != nil {
			p.t.Fatalf("shardtest: %v", err)
			return
		}
		p.line, p.table, p.history = p.line[:i+1], table, old.topology.Ref().History
		p.held = min(p.held, len(p.line))
		p.tell()
		return
	}
	p.t.Fatalf("shardtest: version %s is not among those published", v)
}

// Offer presents t to every client that watches, whatever t is and whatever they
// hold, as a source would that breaks its law, and returns their answers: nil for
// a client that took it, a *sdk.RefusedError for one that did not. It does not
// become the plane's newest version.
func (p *Plane) Offer(t *topology.Topology) []error {
	p.mu.Lock()
	var all []*watch
	for w := range p.watches {
		all = append(all, w)
	}
	p.mu.Unlock()
	var answers []error
	for _, w := range all {
		o := offer{t, make(chan error, 1)}
		if p.hand(w, o) {
			answers = append(answers, <-o.answer)
		}
	}
	return answers
}

// hand gives o to the watch, or returns false if that has ended.
func (p *Plane) hand(w *watch, o offer) bool {
	for {
		p.mu.Lock()
		_, there := p.watches[w]
		changed := p.changed
		p.mu.Unlock()
		if !there {
			return false
		}
		select {
		case w.offers <- o:
			return true
		case <-changed:
		}
	}
}

// Client returns a client that follows the plane and has its newest version, and
// that is closed at the end of the test.
func (p *Plane) Client(opts ...sdk.Option) *sdk.Client {
	p.t.Helper()
	c, err := sdk.New(p, opts...)
	if err != nil {
		p.t.Fatalf("shardtest: %v", err)
		return nil
	}
	p.t.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.WaitReady(ctx); err != nil {
		p.t.Fatalf("shardtest: %v", err)
	}
	return c
}
