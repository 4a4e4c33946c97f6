package topology

import (
	"slices"
	"strings"
)

// How the receiver of a delta comes by a table of the target.
const (
	tableSame   = 0 // the base's of this kind
	tableNamed  = 1 // fetched by digest
	tableEdited = 2 // the base's of this kind, edited
)

// tableEdit is one table of a delta's target.
type tableEdit struct {
	how     byte
	ref     ObjectRef // of the target's table; only the kind if how is tableSame
	removed []int     // positions in the base table's nodes, ascending
	added   []string  // ids, ascending
	moves   []move    // by owner, ascending
}

// move says which entries have a new owner.
type move struct {
	owner int   // position in the target table's nodes; their number = none
	at    []int // entries, rows one after another, ascending
}

func diffTable(base, target *Topology, ref ObjectRef) tableEdit {
	named := tableEdit{how: tableNamed, ref: ref}
	if slices.Contains(base.refs, ref) {
		return tableEdit{how: tableSame, ref: ObjectRef{Kind: ref.Kind}}
	}
	from, to := base.Object(ref.Kind), target.Object(ref.Kind)
	if from == nil || to == nil || from.rows != to.rows || from.size != to.size {
		return named
	}
	e := tableEdit{how: tableEdited, ref: ref}
	e.removed, e.added = diffIDs(from.nodes, to.nodes)
	byOwner := make([][]int, len(to.nodes)+1)
	for i, owner := range e.carry(from, to.nodes) {
		if want := to.entries[i]; owner != want {
			k := min(int(want), len(to.nodes))
			byOwner[k] = append(byOwner[k], i)
		}
	}
	for owner, at := range byOwner {
		if len(at) > 0 {
			e.moves = append(e.moves, move{owner, at})
		}
	}
	if w := (writer{}); len(w.table(e).b) >= len(to.encoded) {
		return named
	}
	return e
}

func diffIDs(base, target []string) (removed []int, added []string) {
	i := 0
	for _, id := range target {
		for ; i < len(base) && base[i] < id; i++ {
			removed = append(removed, i)
		}
		if i < len(base) && base[i] == id {
			i++
			continue
		}
		added = append(added, id)
	}
	for ; i < len(base); i++ {
		removed = append(removed, i)
	}
	return removed, added
}

// carry returns the entries of from as positions in nodes; those whose owner is
// not there any more have none.
func (e *tableEdit) carry(from *Object, nodes []string) []uint16 {
	place := make([]uint16, len(from.nodes))
	for i, id := range from.nodes {
		place[i] = NoOwner
		if j, found := slices.BinarySearch(nodes, id); found {
			place[i] = uint16(j)
		}
	}
	entries := make([]uint16, len(from.entries))
	for i, owner := range from.entries {
		entries[i] = NoOwner
		if owner != NoOwner {
			entries[i] = place[owner]
		}
	}
	return entries
}

// applyTables returns what the target refers to, and the tables that base and
// the edits give. A table whose edits lead elsewhere is left out: it is fetched.
func (d *delta) applyTables(base *Topology) (refs []ObjectRef, objects []*Object) {
	for _, e := range d.tables {
		from := base.Object(e.ref.Kind)
		ref := e.ref
		var o *Object
		switch e.how {
		case tableSame:
			if i := slices.IndexFunc(base.refs, func(r ObjectRef) bool { return r.Kind == ref.Kind }); i >= 0 {
				ref = base.refs[i]
			}
			o = from
		case tableEdited:
			if from != nil {
				o = e.apply(from)
			}
		}
		refs = append(refs, ref)
		if o != nil && o.Ref() == ref {
			objects = append(objects, o)
		}
	}
	return refs, objects
}

// apply returns the edited table, or nil if the edits do not fit.
func (e *tableEdit) apply(from *Object) *Object {
	if n := len(e.removed); n > 0 && e.removed[n-1] >= len(from.nodes) {
		return nil
	}
	nodes := make([]string, 0, len(from.nodes)-len(e.removed)+len(e.added))
	removed := e.removed
	for i, id := range from.nodes {
		if len(removed) > 0 && removed[0] == i {
			removed = removed[1:]
			continue
		}
		nodes = append(nodes, id)
	}
	nodes = append(nodes, e.added...)
	slices.SortFunc(nodes, strings.Compare)
	entries := e.carry(from, nodes)
	for _, m := range e.moves {
		owner := uint16(NoOwner)
		if m.owner < len(nodes) {
			owner = uint16(m.owner)
		}
		for _, i := range m.at {
			if i >= len(entries) {
				return nil
			}
			entries[i] = owner
		}
	}
	o, err := NewObject(from.kind, from.rows, nodes, entries)
	if err != nil {
		return nil
	}
	return o
}
