package topology

import (
	"slices"
	"strings"
)

// MaxTenures is the largest number of nodes that a Tenure remembers.
const MaxTenures = 256

// Tenure says since when nodes own what they own, as far as the nodes tell:
// whose owner weight changed, and when. With it a client can tell whether the
// owner of a key had it all the time, or lost it in between (a node that left and
// came back holds what was written before, and missed what was written since). It
// decides no owner, and is no part of the mapping digest. Maglev and slots have an
// object of KindSince beside it, which tells it of each entry.
type Tenure struct {
	// Floor is the version that the record reaches back to: what is not in it
	// has been so since Floor at least.
	Floor Version `json:"floor"`
	// Nodes are those whose owner weight changed after Floor, ascending by id,
	// at most MaxTenures. They need not be in the topology any more.
	Nodes []NodeTenure `json:"nodes,omitempty"`
}

// NodeTenure is what a Tenure remembers of one node.
type NodeTenure struct {
	ID     string  `json:"id"`
	Peak   uint32  `json:"peak"`   // its largest owner weight since Floor
	Gained Version `json:"gained"` // when it rose last: it joined, came back or grew; zero = not since Floor
	Lost   Version `json:"lost"`   // when it fell last: it left, drained or shrank; zero = not since Floor
}

// Node returns what is remembered of a node, zero if nothing is.
func (r *Tenure) Node(id string) NodeTenure {
	if r == nil {
		return NodeTenure{}
	}
	i, found := slices.BinarySearchFunc(r.Nodes, id, func(n NodeTenure, id string) int { return strings.Compare(n.ID, id) })
	if !found {
		return NodeTenure{}
	}
	return r.Nodes[i]
}

func (r *Tenure) clone() *Tenure {
	if r == nil {
		return nil
	}
	c := *r
	c.Nodes = slices.Clone(r.Nodes)
	return &c
}

func (r *Tenure) validate(path string) error {
	if r == nil {
		return nil
	}
	if r.Floor.Epoch == 0 || r.Floor.Seq == 0 {
		return fieldErr(path+".floor", "version %s: epoch and seq count from 1", r.Floor)
	}
	if len(r.Nodes) > MaxTenures {
		return fieldErr(path+".nodes", "%d nodes are more than %d", len(r.Nodes), MaxTenures)
	}
	for i, n := range r.Nodes {
		if err := ValidateNodeID(n.ID); err != nil {
			return &FieldError{Path: path + ".nodes", Err: err}
		}
		if i > 0 && r.Nodes[i-1].ID >= n.ID {
			return fieldErr(path+".nodes", "node %q is not after %q", n.ID, r.Nodes[i-1].ID)
		}
		if n.Peak > MaxWeight {
			return fieldErr(path+".nodes", "node %q: weight %d is more than %d", n.ID, n.Peak, MaxWeight)
		}
		for _, v := range []Version{n.Gained, n.Lost} {
			if (v.Epoch == 0) != (v.Seq == 0) {
				return fieldErr(path+".nodes", "node %q: version %s: epoch and seq count from 1", n.ID, v)
			}
		}
	}
	return nil
}

// Tenure returns since when nodes own what they own; nil if nobody recorded it.
// Read only.
func (t *Topology) Tenure() *Tenure { return t.d.Tenure }

// Tags of the tenure's fields.
const (
	tagTenureFloor = 1 + iota
	tagTenureNodes
)

func (w *writer) version(v Version) {
	w.uvarint(v.Epoch)
	w.uvarint(v.Seq)
}

// versionField leaves the zero version out.
func (w *writer) versionField(tag uint64, v Version) {
	if !v.IsZero() {
		var p writer
		p.version(v)
		w.bytesField(tag, p.b)
	}
}

func (r *reader) version() Version { return Version{r.uvarint(), r.uvarint()} }

func encodeTenure(r *Tenure) []byte {
	if r == nil {
		return nil
	}
	var w, floor, nodes writer
	floor.version(r.Floor)
	w.bytesField(tagTenureFloor, floor.b)
	if len(r.Nodes) > 0 {
		nodes.uvarint(uint64(len(r.Nodes)))
		for _, n := range r.Nodes {
			nodes.str(n.ID)
			nodes.uvarint(uint64(n.Peak))
			nodes.version(n.Gained)
			nodes.version(n.Lost)
		}
		w.bytesField(tagTenureNodes, nodes.b)
	}
	return w.b
}

func decodeTenure(r *reader) *Tenure {
	t := new(Tenure)
	r.fields("tenure", []uint64{tagTenureFloor, tagTenureNodes}, func(tag uint64, p *reader) {
		switch tag {
		case tagTenureFloor:
			t.Floor = p.version()
		case tagTenureNodes:
			t.Nodes = make([]NodeTenure, p.count(7))
			for i := range t.Nodes {
				t.Nodes[i] = NodeTenure{p.str(), uint32(p.uint(MaxWeight, "weight")), p.version(), p.version()}
			}
		}
	})
	return t
}

// NewSince makes the object of KindSince for a table of so many rows: since[i] is
// the version since which the owner of entry i, rows one after another, has owned
// it without a gap; the zero version stands for an entry without an owner.
// O(len(since) log versions).
func NewSince(rows int, since []Version) (*Object, error) {
	var names []string
	seen := map[Version]bool{}
	for _, v := range since {
		if !v.IsZero() && !seen[v] {
			seen[v] = true
			names = append(names, v.String())
		}
	}
	slices.Sort(names)
	at := make(map[Version]uint16, len(names))
	for i, n := range names {
		v, err := ParseVersion(n)
		if err != nil {
			return nil, err
		}
		at[v] = uint16(i)
	}
	entries := make([]uint16, len(since))
	for i, v := range since {
		entries[i] = NoOwner
		if !v.IsZero() {
			entries[i] = at[v]
		}
	}
	return NewObject(KindSince, rows, names, entries)
}

// Since returns what NewSince was given. ErrCorrupt if the object is of another
// kind or names what are no versions.
func (o *Object) Since() ([]Version, error) {
	versions := make([]Version, len(o.nodes))
	for i, n := range o.nodes {
		v, err := ParseVersion(n)
		if err != nil || v.Epoch == 0 || v.Seq == 0 || o.kind != KindSince {
			return nil, corrupt(fieldErr("objects", "%q of a %s table is no version", n, o.kind))
		}
		versions[i] = v
	}
	since := make([]Version, len(o.entries))
	for i, e := range o.entries {
		if e != NoOwner {
			since[i] = versions[e]
		}
	}
	return since, nil
}
