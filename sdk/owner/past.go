package owner

import (
	"slices"
	"sync"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// remembered is how many versions a node remembers besides those that records name.
const remembered = 32

// past is what a node remembers of the versions before its own, to know what nodes that
// lag own by theirs. It needs those that it did not go over to, too: another node may
// have.
type past struct {
	mu   sync.Mutex
	seen []*topology.Topology // newest last

	tables []*placement.Table // of versions that are asked for; the loop's alone
}

// saw remembers a version that the client holds.
func (p *past) saw(t *topology.Topology) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t == nil || slices.ContainsFunc(p.seen, func(s *topology.Topology) bool { return s.Ref() == t.Ref() }) {
		return
	}
	if p.seen = append(p.seen, t); len(p.seen) > remembered {
		p.seen = slices.Delete(p.seen, 0, 1)
	}
}

// went remembers the table of a version that the node went over to.
func (p *past) went(t *placement.Table) {
	p.saw(t.Topology())
	p.tables = append(p.tables, t)
}

// table returns the table of a version, nil if that is not remembered.
func (p *past) table(ref topology.Ref) *placement.Table {
	for _, t := range p.tables {
		if t.Topology().Ref() == ref {
			return t
		}
	}
	p.mu.Lock()
	i := slices.IndexFunc(p.seen, func(s *topology.Topology) bool { return s.Ref() == ref })
	var found *topology.Topology
	if i >= 0 {
		found = p.seen[i]
	}
	p.mu.Unlock()
	if found == nil {
		return nil
	}
	t, err := placement.New(found)
	if err != nil { // the client has built the same: never
		return nil
	}
	p.tables = append(p.tables, t)
	return t
}

// keep forgets the tables of versions that no record names and v does not need.
func (p *past) keep(records []Record, v *view) {
	p.tables = slices.DeleteFunc(p.tables, func(t *placement.Table) bool {
		ref := t.Topology().Ref()
		return !v.needs(t) && !slices.ContainsFunc(records, func(r Record) bool { return r.Settled == ref })
	})
}
