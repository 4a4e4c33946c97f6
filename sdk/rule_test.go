package sdk

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// The rule by which versions never go back, searched exhaustively: a store, two
// backups and two restores of it, with and without the server's own file, a live
// copy of it that goes on by itself, two clients that connect to either in any
// order, and bumps. The decisions are the real ones: admit of this package,
// Position.WentBack, Standing.Admit and State.NextEpoch of package membership.
// Only the store and the network are small.

// ver is an index into model.vers; 0 = none.
type ver int16

type version struct {
	ref    topology.Ref
	parent ver
}

// place is what a version is known by before it has a digest.
type place struct {
	parent      ver
	epoch, hist uint8
	seq         uint64
	content     int
}

// copyOf is one store with its server: what a backup saves, and what runs.
type copyOf struct {
	on    bool
	epoch uint8
	hist  uint8
	head  ver
	shown [5]ver // evidence, as Standing.Shown
	file  ver    // the newest version that its server has kept
}

// world is one state.
type world struct {
	stores   [2]copyOf // the store, and its live copy
	backups  [2]copyOf
	clients  [2]ver
	pubs     uint8
	restores uint8
	bumps    uint8
	draws    uint8 // histories drawn so far
}

type bounds struct{ pubs, restores, bumps uint8 }

// rule is what is checked.
type rule struct {
	admit func(held, offered topology.Ref, parent topology.Digest) (verdict, error)
	// prove is what a source does before it offers.
	prove func(m *model, s copyOf, held ver) bool
}

type model struct {
	rule     rule
	limit    bounds
	vers     []version
	index    map[place]ver
	byDigest map[topology.Digest]ver
	seen     map[world]struct{}
	queue    []world
	most     int // bumps until all clients agree
	failed   error
}

var modelCluster = topology.ClusterID{1}

func newModel(r rule, limit bounds) *model {
	return &model{rule: r, limit: limit, vers: make([]version, 1), index: map[place]ver{}, byDigest: map[topology.Digest]ver{}, seen: map[world]struct{}{}}
}

// child returns the version with this parent; content tells apart what two
// leaders may publish at the same place.
func (m *model) child(s copyOf, seq uint64, content int) ver {
	k := place{s.head, s.epoch, s.hist, seq, content}
	i, ok := m.index[k]
	if !ok {
		v := version{parent: s.head, ref: topology.Ref{ClusterID: modelCluster, History: topology.History(s.hist), Version: topology.Version{Epoch: uint64(s.epoch), Seq: seq}}}
		v.ref.Digest = topology.Sum(fmt.Appendf(nil, "%v", k))
		i = ver(len(m.vers))
		m.vers = append(m.vers, v)
		m.index[k], m.byDigest[v.ref.Digest] = i, i
	}
	return i
}

// inChain reports whether v is the head or before it in its history.
func (m *model) inChain(s copyOf, v ver) bool {
	for i := s.head; i != 0 && m.vers[i].ref.History == m.vers[s.head].ref.History; i = m.vers[i].parent {
		if i == v {
			return true
		}
	}
	return false
}

func (m *model) state(s copyOf) membership.State {
	st := membership.State{ID: modelCluster, Epoch: uint64(s.epoch), History: topology.History(s.hist)}
	for _, v := range s.shown {
		if v != 0 {
			st.Shown = append(st.Shown, membership.Shown{Ref: m.vers[v].ref})
		}
	}
	return st
}

// show presents v to s, as Epochs.Show does.
func (m *model) show(s *copyOf, v ver) {
	st := m.state(*s)
	p := st.Position()
	p.Head = m.vers[s.head].ref
	if v == 0 || !p.WentBack(m.vers[v].ref, m.inChain(*s, v)) {
		return
	}
	if _, err := st.Admit(st.Epoch, membership.Shown{Ref: m.vers[v].ref}); err != nil {
		m.fail("evidence: %v", err)
	}
	if len(st.Shown) > len(s.shown) {
		m.fail("the model keeps too little evidence")
		return
	}
	s.shown = [5]ver{}
	for i, shown := range st.Shown {
		s.shown[i] = m.byDigest[shown.Ref.Digest]
	}
}

// keep is what a server does before it fans out.
func (m *model) keep(s *copyOf) {
	if s.file == 0 || m.vers[s.head].ref.Version.Compare(m.vers[s.file].ref.Version) > 0 {
		s.file = s.head
	}
}

func (m *model) fail(format string, args ...any) {
	if m.failed == nil {
		m.failed = fmt.Errorf(format, args...)
	}
}

// connect lets client c present what it holds to store i, and take what it is
// sent.
func (m *model) connect(w *world, c, i int) {
	s, held := &w.stores[i], w.clients[c]
	if s.head == 0 {
		return
	}
	h, offered := m.vers[held], m.vers[s.head]
	if held != 0 && !m.rule.prove(m, *s, held) {
		m.show(s, held)
		return
	}
	m.keep(s)
	v, err := m.rule.admit(h.ref, offered.ref, m.vers[offered.parent].ref.Digest)
	switch {
	case v == refuse && err == nil:
		m.fail("refused without a reason")
	case v == have && held != s.head:
		m.fail("client holds %s, the store has %s, and nobody notices", h.ref, offered.ref)
	case v == take:
		if held != 0 && offered.ref.Version.Epoch == h.ref.Version.Epoch && !m.inChain(*s, held) {
			m.fail("client goes from %s to %s, which is no descendant", h.ref, offered.ref)
		}
		if offered.ref.Version.Compare(h.ref.Version) <= 0 {
			m.fail("client goes back from %s to %s", h.ref, offered.ref)
		}
		w.clients[c] = s.head
	}
}

// bump begins an epoch, as State.Bump does.
func (m *model) bump(w *world, i int) {
	s := &w.stores[i]
	s.epoch = uint8(m.state(*s).NextEpoch())
	w.draws++
	s.hist = w.draws
	if s.head != 0 {
		s.head = m.child(*s, 1, 0)
	}
	s.shown = [5]ver{}
}

// next visits every state that one step leads to.
func (m *model) next(w world) {
	for i := range w.stores {
		if !w.stores[i].on {
			continue
		}
		m.publish(w, i)
		for c := range w.clients {
			n := w
			m.connect(&n, c, i)
			m.visit(n)
		}
		n := w // the server, at its start or after a look at the store, presents its file
		m.show(&n.stores[i], n.stores[i].file)
		m.visit(n)
		if w.stores[i].shown[0] != 0 && w.bumps < m.limit.bumps {
			n := w
			n.bumps++
			m.bump(&n, i)
			m.visit(n)
		}
	}
	m.disasters(w)
}

func (m *model) publish(w world, i int) {
	s := w.stores[i]
	if s.shown[0] != 0 || w.pubs == m.limit.pubs {
		return
	}
	w.pubs++
	seq := uint64(1)
	if last := m.vers[s.head].ref; s.head != 0 && last.Version.Epoch == uint64(s.epoch) {
		seq = last.Version.Seq + 1
	}
	for content := range 2 {
		n := w
		n.stores[i].head = m.child(s, seq, content)
		m.visit(n)
	}
}

// disasters are backups, restores and a copy of the store that goes live.
func (m *model) disasters(w world) {
	for b := range w.backups {
		if !w.backups[b].on && (b == 0 || w.backups[b-1].on) {
			n := w
			n.backups[b] = w.stores[0]
			m.visit(n)
		}
		if !w.backups[b].on || w.restores == m.limit.restores {
			continue
		}
		for _, withFile := range []bool{false, true} { // of the store alone, or of the server's directory too
			n := w
			n.restores++
			n.stores[0] = w.backups[b]
			if !withFile {
				n.stores[0].file = w.stores[0].file
			}
			m.visit(n)
		}
	}
	if !w.stores[1].on {
		for _, withFile := range []bool{false, true} {
			n := w
			n.stores[1] = w.stores[0]
			if !withFile {
				n.stores[1].file = 0
			}
			m.visit(n)
		}
	}
}

func (m *model) visit(w world) {
	if w.clients[0] > w.clients[1] { // they are alike
		w.clients[0], w.clients[1] = w.clients[1], w.clients[0]
	}
	if _, ok := m.seen[w]; !ok {
		m.seen[w] = struct{}{}
		m.queue = append(m.queue, w)
	}
}

// run searches breadth first until something fails.
func (m *model) run() {
	start := world{draws: 1}
	start.stores[0] = copyOf{on: true, epoch: 1, hist: 1}
	m.visit(start)
	for len(m.queue) > 0 && m.failed == nil {
		w := m.queue[0]
		m.queue = m.queue[1:]
		m.next(w)
		for i := range w.stores {
			if w.stores[i].on && w.stores[i].head != 0 {
				m.converge(w, i)
			}
		}
	}
}

// converge lets the disasters end and one store go on: after a few bumps all
// clients have its head.
func (m *model) converge(w world, i int) {
	for bumps := range 4 {
		for c := range w.clients {
			m.connect(&w, c, i)
		}
		m.show(&w.stores[i], w.stores[i].file)
		s := w.stores[i]
		if s.shown[0] == 0 && w.clients == [2]ver{s.head, s.head} {
			m.most = max(m.most, bumps)
			return
		}
		if s.shown[0] == 0 {
			m.fail("clients hold %s and %s, the head is %s, and nothing shows it", m.vers[w.clients[0]].ref, m.vers[w.clients[1]].ref, m.vers[s.head].ref)
			return
		}
		m.bump(&w, i)
	}
	m.fail("clients do not converge")
}

// real is the rule as the SDK, the servers and the stores apply it.
var real = rule{
	admit: func(held, offered topology.Ref, parent topology.Digest) (verdict, error) {
		return admit(modelCluster, held, offered, parent)
	},
	prove: func(m *model, s copyOf, held ver) bool {
		h, head := m.vers[held].ref, m.vers[s.head].ref
		return head.Version.Epoch > h.Version.Epoch || m.inChain(s, held)
	},
}

var wide = flag.Bool("wide", false, "search the rule of versions with one bump more: some minutes and gigabytes")

// TestRuleEverywhere searches all states within the bounds.
func TestRuleEverywhere(t *testing.T) {
	limit := bounds{pubs: 2, restores: 2, bumps: 1}
	if testing.Short() || underRace { // one goroutine: nothing to race
		limit = bounds{pubs: 2, restores: 1, bumps: 1}
	}
	if *wide {
		limit.bumps++
	}
	m := newModel(real, limit)
	m.run()
	if m.failed != nil {
		t.Fatal(m.failed)
	}
	t.Logf("%d states, %d versions, at most %d bumps to converge", len(m.seen), len(m.vers)-1, m.most)
	if m.most == 0 || m.most > 2 {
		t.Errorf("%d bumps to converge", m.most)
	}
}

// TestRuleMatters: the search finds what goes wrong under a weaker rule.
func TestRuleMatters(t *testing.T) {
	numbers := func(held, offered topology.Ref, _ topology.Digest) (verdict, error) {
		switch c := offered.Version.Compare(held.Version); {
		case held.IsZero() || c > 0:
			return take, nil
		case c == 0:
			return have, nil
		}
		return refuse, errors.New("older")
	}
	notOlder := func(m *model, s copyOf, held ver) bool {
		return m.vers[s.head].ref.Version.Compare(m.vers[held].ref.Version) >= 0
	}
	for name, r := range map[string]rule{
		"numbers alone":          {numbers, notOlder},
		"the rule without proof": {real.admit, notOlder},
	} {
		m := newModel(r, bounds{pubs: 4, restores: 1, bumps: 1})
		m.run()
		if m.failed == nil {
			t.Errorf("%s: nothing is found in %d states", name, len(m.seen))
		}
		t.Logf("%s: after %d states: %v", name, len(m.seen), m.failed)
	}
}
