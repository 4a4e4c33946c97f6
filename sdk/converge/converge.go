// Package converge lets the servers of a sharded service tell clients whose topology
// is old: a request says by which version it was routed, and a server that does not
// own the key by a newer one answers with the difference, so that the client is right
// with its next request and waits for no source.
//
//	// in clients
//	source := converge.New(httpsource...)    // a sdk.Source around another
//	client, err := sdk.New(source)
//	transport := httplb.New(client, httplb.Config{Converge: source})
//
//	// in servers
//	past := converge.Remember(client)
//	... past.Answer(presented) ...           // sdk/owner does it
//
// # Law
//
// What a server sends is taken by the rule of every source (sdk.Source): it sends a
// newer version only to who presents one that the server itself held before, under the
// same digest, or one of a lower epoch; and the client checks cluster, epoch, history,
// order and both digests as always. Nobody goes back.
//
// # Cost
//
// A header of 100 bytes for each request. An answer is a delta: 369 bytes for a node
// added to 1,000 (topology.Delta).
//
// # Source
//
// MOVED of Redis Cluster tells one slot; this tells the version, so a client converges
// in one round trip however much has changed, and never to an older map. The status is
// that of RFC 9110, section 15.5.20: 421 Misdirected Request.
//
// # What it does not do
//
// A server that has just started has no past: it says that it is newer, and the client
// waits for its source.
package converge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

const (
	// Header says in a request by which topology it was routed; see Present. In
	// gRPC metadata the key is its lower case.
	Header = "Shardd-Topology"
	// ContentType is that of an answer from Past.
	ContentType = "application/vnd.shardd.topology"
	// MaxAnswer is the most bytes of an answer that are made or taken.
	MaxAnswer = 1 << 20
)

// ErrPresented says that what a request presents cannot be read.
var ErrPresented = errors.New("converge: not a topology's reference")

// Present returns what a request says of the topology that routed it:
// cluster id/history/version/digest. "" for nil.
func Present(t *topology.Topology) string {
	if t == nil {
		return ""
	}
	r := t.Ref()
	return r.ClusterID.String() + "/" + r.History.String() + "/" + r.Version.String() + "/" + r.Digest.String()
}

// Parse reads what Present writes. Errors: ErrPresented.
func Parse(s string) (topology.Ref, error) {
	var r topology.Ref
	f := strings.Split(s, "/")
	if len(f) != 4 {
		return r, fmt.Errorf("%w: %.200q", ErrPresented, s)
	}
	err := errors.Join(r.ClusterID.UnmarshalText([]byte(f[0])), r.History.UnmarshalText([]byte(f[1])),
		r.Version.UnmarshalText([]byte(f[2])), r.Digest.UnmarshalText([]byte(f[3])))
	if err != nil {
		return topology.Ref{}, fmt.Errorf("%w: %w", ErrPresented, err)
	}
	return r, nil
}

// Source is a sdk.Source around another one, to which servers' answers are added. Make
// one with New, and one client of it.
type Source struct {
	inner sdk.Source

	mu    sync.Mutex // held while a topology is offered: one at a time
	fn    func(*topology.Topology) error
	taken topology.Ref // what was taken from an answer last
}

// New returns a source around inner.
func New(inner sdk.Source) *Source { return &Source{inner: inner} }

// Watch is sdk.Source.Watch.
func (s *Source) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	s.mu.Lock()
	s.fn, s.taken = fn, topology.Ref{}
	s.mu.Unlock()
	// A source that failed is watched again after a pause; answers are taken
	// meanwhile, when they are needed most. A client that ended takes none.
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ctx.Err() != nil {
			s.fn = nil
		}
	}()
	return s.inner.Watch(ctx, have, func(t *topology.Topology) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t != nil && s.passed(t.Ref()) {
			return nil // the client is further on, by an answer
		}
		return fn(t)
	})
}

// passed reports whether the client has gone on from r to what an answer brought.
func (s *Source) passed(r topology.Ref) bool {
	return !s.taken.IsZero() && r.ClusterID == s.taken.ClusterID && r.History == s.taken.History &&
		r.Version.Epoch == s.taken.Version.Epoch && r.Version.Seq < s.taken.Version.Seq
}

// Take takes a server's answer to a request that was routed by base. It reports
// whether the client goes by another topology than base by now, so that the request is
// worth sending again. An answer that cannot be read is left.
func (s *Source) Take(base *topology.Topology, answer []byte) bool {
	t, err := Read(base, answer)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fn == nil {
		return false
	}
	if err := s.fn(t); err != nil {
		// The client is further on already, or refuses: then nothing has changed.
		return errors.Is(err, sdk.ErrOlder)
	}
	s.taken = t.Ref()
	return true
}

// TakeHTTP is Take of an answer of status 421 and ContentType, whose body it reads; of
// others it touches nothing.
func (s *Source) TakeHTTP(base *topology.Topology, resp *http.Response) bool {
	if resp.StatusCode != http.StatusMisdirectedRequest || resp.Header.Get("Content-Type") != ContentType {
		return false
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	return err == nil && len(b) <= MaxAnswer && s.Take(base, b)
}

// The two forms of an answer.
const (
	formDelta = 'D' // topology.Delta
	formSaved = 'S' // topology.MarshalSaved
)

// Read returns the topology that an answer brings to who holds base. Errors:
// topology.ErrCorrupt, topology.ErrDeltaBase, topology.ErrUnknown,
// topology.ErrMissingObject.
func Read(base *topology.Topology, answer []byte) (*topology.Topology, error) {
	if len(answer) == 0 || base == nil {
		return nil, fmt.Errorf("converge: empty answer: %w", topology.ErrCorrupt)
	}
	switch answer[0] {
	case formSaved:
		return topology.UnmarshalSaved(answer[1:])
	case formDelta:
		d, err := topology.DecodeDelta(answer[1:])
		if err != nil {
			return nil, err
		}
		t, objects, err := d.Apply(base)
		if err != nil {
			return nil, err
		}
		return t.Attach(objects...)
	}
	return nil, fmt.Errorf("converge: answer of form %q: %w", answer[0], topology.ErrUnknown)
}

// remembered is how many versions a Past remembers.
const remembered = 32

// Past remembers the versions that a client went through. Make one with Remember, end
// it with Close.
type Past struct {
	client *sdk.Client
	end    func()
	mu     sync.Mutex
	line   []*topology.Topology // in the order in which they were seen
}

// Remember returns the past of client, from now on.
func Remember(client *sdk.Client) *Past {
	p := &Past{client: client}
	p.end = client.OnChange(func(ch sdk.Change) {
		if ch.Anew { // what was before need not lead here
			p.forget()
		}
		p.add(ch.To)
	})
	p.add(client.Topology()) // at once: the callback may come when the client is further on
	return p
}

// Close ends the remembering.
func (p *Past) Close() { p.end() }

func (p *Past) add(t *topology.Topology) {
	if t == nil || p.find(t.Ref()) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = append(p.line, t)
	if len(p.line) > remembered {
		p.line = p.line[len(p.line)-remembered:]
	}
}

// Answer returns what to send to who presents ref, nil if there is nothing: he holds
// what the client holds, or something newer, or something that cannot be shown to lead
// there. newer says that the client's topology is newer than his.
func (p *Past) Answer(ref topology.Ref) (answer []byte, newer bool) {
	now := p.client.Topology()
	if now == nil || ref.ClusterID != now.ClusterID() || ref.Version.Compare(now.Version()) >= 0 {
		return nil, false
	}
	base := p.find(ref)
	if base == nil && ref.Version.Epoch == now.Version().Epoch && now.Parent() != ref.Digest {
		return nil, true
	}
	if base != nil {
		if d, err := topology.Diff(base, now); err == nil {
			b := append([]byte{formDelta}, d.Encode()...)
			if _, err := Read(base, b); err == nil && len(b) <= MaxAnswer {
				return b, true
			}
		}
	}
	saved, err := now.MarshalSaved()
	if err != nil || len(saved) >= MaxAnswer {
		return nil, true
	}
	return append([]byte{formSaved}, saved...), true
}

func (p *Past) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = nil
}

func (p *Past) find(ref topology.Ref) *topology.Topology {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.line {
		if t.Ref() == ref {
			return t
		}
	}
	return nil
}
