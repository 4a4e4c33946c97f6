// Package pools keeps one value for each node of a topology, such as a pool of
// connections: opened and warmed up before its first use, shared by all requests
// for the node, and closed when the node has left and nobody uses it any more.
//
// Law: a value is opened at most once for each stay of a node at an address, is
// given to nobody before its warm-up has ended (or its time is over), and is
// closed exactly once: when its last lease ends after the node left, or after the
// grace, or by Close. A node that comes back, or at another address, gets a new
// value.
//
// Cost: a lease is a map lookup and two atomic operations; no lock, no
// allocation. A new topology costs O(nodes) once.
package pools

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// ErrClosed says that the pools were closed.
var ErrClosed = errors.New("pools: closed")

// Config says how values are made. Open and Close are required.
type Config[T any] struct {
	Open  func(topology.Node) (T, error) // does no I/O that takes long
	Close func(T)
	// Warm makes a value ready for its first use; its error is ignored: the
	// first request will meet what is wrong. nil = there is nothing to do, and
	// values are opened with their first use.
	Warm func(context.Context, T) error
	// WarmTimeout bounds Warm, and so what a first request waits for; 0 = 1 s.
	WarmTimeout time.Duration
	// Grace is how long leases of a node that left may go on before its value
	// is closed under them; 0 = 30 s.
	Grace time.Duration
}

// warmers is how many nodes are warmed up at the same time.
const warmers = 16

// Pools holds the values. Make one with New. Safe for concurrent use.
type Pools[T any] struct {
	cfg    Config[T]
	client *sdk.Client
	ctx    context.Context
	cancel context.CancelFunc
	end    func() // of OnChange

	entries atomic.Pointer[map[key]*entry[T]] // copied on every change

	mu     sync.Mutex // held to change entries
	closed bool
	work   sync.WaitGroup
	slots  chan struct{}
}

// key names one stay of a node at an address.
type key struct{ id, addr string }

type entry[T any] struct {
	node  topology.Node
	value T
	err   error
	ready chan struct{} // closed after the warm-up
	refs  atomic.Int64  // leases, and one while the node is there
	close func()        // at most once
	grace *time.Timer
}

// New returns pools for the nodes that client knows. It does no I/O itself. Close
// it before the client.
func New[T any](client *sdk.Client, cfg Config[T]) *Pools[T] {
	cfg.WarmTimeout = cmp.Or(cfg.WarmTimeout, time.Second)
	cfg.Grace = cmp.Or(cfg.Grace, 30*time.Second)
	p := &Pools[T]{cfg: cfg, client: client, slots: make(chan struct{}, warmers)}
	p.entries.Store(&map[key]*entry[T]{})
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.end = client.OnChange(p.changed)
	return p
}

// Lease is one use of a node's value. End it with Done.
type Lease[T any] struct{ e *entry[T] }

// Value returns what was opened for the node.
func (l Lease[T]) Value() T { return l.e.value }

// Node returns the node as it was when its value was opened.
func (l Lease[T]) Node() topology.Node { return l.e.node }

// Done ends the lease. Call it once.
func (l Lease[T]) Done() { l.e.release() }

// Use returns the value of the node that the route leads to, and waits for its
// warm-up. Errors: ErrClosed, Open's.
func (p *Pools[T]) Use(r sdk.Route) (Lease[T], error) {
	return p.lease(key{r.ID(), r.Addr()}, r.Node)
}

func (p *Pools[T]) lease(k key, node func() topology.Node) (Lease[T], error) {
	for {
		e, opened := (*p.entries.Load())[k], false
		if e == nil {
			var err error
			if e, opened, err = p.make(k, node()); err != nil {
				return Lease[T]{}, err
			}
		}
		if !opened && !e.acquire() {
			continue // closed at this moment
		}
		<-e.ready
		if e.err != nil {
			e.release()
			return Lease[T]{}, e.err
		}
		return Lease[T]{e}, nil
	}
}

// Nodes returns the values of all nodes of the newest topology that take requests
// or are about to, in ID order, and calls fn with each. It returns fn's errors
// joined.
func (p *Pools[T]) Nodes(fn func(topology.Node, T) error) error {
	t := p.client.Topology()
	if t == nil {
		return sdk.ErrNotReady
	}
	var errs []error
	for _, n := range t.Nodes() {
		if n.State == topology.StateLeft {
			continue
		}
		errs = append(errs, p.One(n, fn))
	}
	return errors.Join(errs...)
}

// One calls fn with the value of node n, as Nodes does for all.
func (p *Pools[T]) One(n topology.Node, fn func(topology.Node, T) error) error {
	l, err := p.lease(key{n.ID, n.Addr}, func() topology.Node { return n })
	if err != nil {
		return err
	}
	defer l.Done()
	return fn(n, l.Value())
}

// make puts an entry in place, opens it and warms it up, and acquires it for the
// caller, unless somebody else was first.
func (p *Pools[T]) make(k key, n topology.Node) (e *entry[T], opened bool, err error) {
	e, mine, err := p.place(k, n)
	if err != nil || !mine {
		return e, false, err
	}
	e.acquire() // nobody has let go of it yet
	p.open(e)
	p.sift(k, e)
	return e, true, nil
}

// place returns the entry for k, and whether the caller is to open it.
func (p *Pools[T]) place(k key, n topology.Node) (*entry[T], bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, ErrClosed
	}
	old := *p.entries.Load()
	if e := old[k]; e != nil {
		return e, false, nil
	}
	e := &entry[T]{node: n, ready: make(chan struct{})}
	e.refs.Store(1)
	e.close = sync.OnceFunc(func() { p.shut(e) })
	next := maps.Clone(old)
	next[k] = e
	p.entries.Store(&next)
	return e, true, nil
}

func (p *Pools[T]) open(e *entry[T]) {
	defer close(e.ready)
	if e.value, e.err = p.cfg.Open(e.node); e.err != nil || p.cfg.Warm == nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.WarmTimeout)
	defer cancel()
	_ = p.cfg.Warm(ctx, e.value) // the first request meets what is wrong
}

// shut closes e's value. One that is not open yet, or stands in line for that, is closed
// when it is: nobody waits for it here, least of all the client's changes.
func (p *Pools[T]) shut(e *entry[T]) {
	done := func() {
		<-e.ready
		if e.err == nil {
			p.cfg.Close(e.value)
		}
	}
	select {
	case <-e.ready:
		done()
	default:
		go done()
	}
}

// sift lets go of what could not be opened, so that the next use tries again, and
// of what a route of an earlier version asked for: that is for one use only.
func (p *Pools[T]) sift(k key, e *entry[T]) {
	if e.err != nil || p.gone(k) {
		p.remove(k, e)
	}
}

// gone reports whether the newest topology has no such node at this address.
func (p *Pools[T]) gone(k key) bool {
	t := p.client.Topology()
	if t == nil {
		return false
	}
	i := t.Index(k.id)
	return i < 0 || t.Node(i).Addr != k.addr || t.Node(i).State == topology.StateLeft
}

// remove takes e out of the map, so that nobody finds it any more.
func (p *Pools[T]) remove(k key, e *entry[T]) {
	p.mu.Lock()
	old := *p.entries.Load()
	if old[k] != e {
		p.mu.Unlock()
		return
	}
	next := maps.Clone(old)
	delete(next, k)
	p.entries.Store(&next)
	p.mu.Unlock()
	p.leave(e)
}

// leave lets the leases of e end, and closes it after the grace at the latest.
func (p *Pools[T]) leave(e *entry[T]) {
	e.grace = time.AfterFunc(p.cfg.Grace, e.close)
	e.release()
}

// changed follows the topology.
func (p *Pools[T]) changed(ch sdk.Change) {
	stays := make(map[key]bool, ch.To.Len())
	for _, n := range ch.To.Nodes() {
		if n.State == topology.StateLeft {
			continue
		}
		k := key{n.ID, n.Addr}
		stays[k] = true
		if p.cfg.Warm != nil {
			p.warm(k, n)
		}
	}
	for k, e := range *p.entries.Load() {
		if !stays[k] {
			p.remove(k, e)
		}
	}
}

// warm makes the entry of a node in the background, before its first use if that
// comes later.
func (p *Pools[T]) warm(k key, n topology.Node) {
	if (*p.entries.Load())[k] != nil {
		return
	}
	e, mine, err := p.place(k, n)
	if err != nil || !mine {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed { // Close has the entry and waits for it
		e.err = ErrClosed
		close(e.ready)
		return
	}
	p.work.Go(func() {
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-p.ctx.Done():
		}
		p.open(e)
		p.sift(k, e)
	})
}

func (e *entry[T]) acquire() bool {
	for {
		n := e.refs.Load()
		if n == 0 {
			return false
		}
		if e.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (e *entry[T]) release() {
	if e.refs.Add(-1) == 0 {
		if e.grace != nil {
			e.grace.Stop()
		}
		e.close()
	}
}

// Close closes all values, those in use too, and waits for warm-ups to end.
func (p *Pools[T]) Close() {
	p.end()
	p.mu.Lock()
	already := p.closed
	p.closed = true
	old := *p.entries.Load()
	p.entries.Store(&map[key]*entry[T]{})
	p.mu.Unlock()
	p.cancel()
	p.work.Wait()
	if already {
		return
	}
	for _, e := range old {
		<-e.ready
		e.close()
	}
}
