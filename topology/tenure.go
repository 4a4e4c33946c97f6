package topology

import (
	"slices"
	"strings"
)

// Limits of a Tenure.
const (
	// MaxTenures is the largest number of nodes that it remembers.
	MaxTenures = 256
	// MaxWeightSteps is the largest number of weights that it remembers of a node.
	MaxWeightSteps = 6
)

// Tenure says since when nodes serve what they serve, as far as the nodes tell:
// whose weight changed, and when. A node serves by its owner weight, and by none
// while it is down: requests then go round it, and it misses what they write. With
// it a client can tell whether the server of a key had it all the time, or lost it
// in between (a node that left and came back holds what was written before, and
// missed what was written since). It decides no owner, and is no part of the mapping
// digest. Maglev, slots and jump have an object of KindSince beside it, which tells
// it of each entry.
type Tenure struct {
	// Floor is the version that the record reaches back to: what is not in it
	// has been so since Floor at least.
	Floor Version `json:"floor"`
	// Nodes are those whose weight changed after Floor, ascending by id,
	// at most MaxTenures. They need not be in the topology any more.
	Nodes []NodeTenure `json:"nodes,omitempty"`
	// Moved is the version at which keys last changed their nodes otherwise than
	// the weights tell: by zones, by earlier tables, by a foreign mapping in which a
	// node that comes or goes moves the keys of others; zero = not since Floor.
	Moved Version `json:"moved,omitzero"`
}

// NodeTenure is what a Tenure remembers of one node.
type NodeTenure struct {
	ID     string  `json:"id"`
	Peak   uint32  `json:"peak"`   // its largest weight since Floor
	Gained Version `json:"gained"` // when it rose last: it joined, came back, came up or grew; zero = not since Floor
	Lost   Version `json:"lost"`   // when it fell last: it left, drained, went down or shrank; zero = not since Floor
	// Least and Steps tell of a node under ring that grew or shrank: its weights, each
	// from a version on, ascending, at most MaxWeightSteps; before the first its weight
	// was somewhere from Least to Peak. No Steps = all there is to tell is above.
	Least uint32       `json:"least,omitempty"`
	Steps []WeightStep `json:"steps,omitempty"`
}

// WeightStep is a weight from a version on.
type WeightStep struct {
	Since  Version `json:"since"`
	Weight uint32  `json:"weight"`
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
	for i, n := range c.Nodes {
		c.Nodes[i].Steps = slices.Clone(n.Steps)
	}
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
	if half(r.Moved) {
		return fieldErr(path+".moved", "version %s: epoch and seq count from 1", r.Moved)
	}
	for i, n := range r.Nodes {
		if i > 0 && r.Nodes[i-1].ID >= n.ID {
			return fieldErr(path+".nodes", "node %q is not after %q", n.ID, r.Nodes[i-1].ID)
		}
		if err := n.validate(path + ".nodes"); err != nil {
			return err
		}
	}
	return nil
}

// half reports whether one number of a version is there and the other is not.
func half(v Version) bool { return (v.Epoch == 0) != (v.Seq == 0) }

func (n NodeTenure) validate(path string) error {
	if err := ValidateNodeID(n.ID); err != nil {
		return &FieldError{Path: path, Err: err}
	}
	for _, v := range []Version{n.Gained, n.Lost} {
		if half(v) {
			return fieldErr(path, "node %q: version %s: epoch and seq count from 1", n.ID, v)
		}
	}
	switch {
	case n.Peak > MaxWeight:
		return fieldErr(path, "node %q: weight %d is more than %d", n.ID, n.Peak, MaxWeight)
	case len(n.Steps) > MaxWeightSteps:
		return fieldErr(path, "node %q: %d weights are more than %d", n.ID, len(n.Steps), MaxWeightSteps)
	case len(n.Steps) == 0 && n.Least != 0 || n.Least > n.Peak:
		return fieldErr(path, "node %q: weight %d is no lower end of its weights, which reach to %d", n.ID, n.Least, n.Peak)
	}
	for i, s := range n.Steps {
		if s.Since.Epoch == 0 || s.Since.Seq == 0 || s.Weight > n.Peak || i > 0 && s.Since.Compare(n.Steps[i-1].Since) <= 0 {
			return fieldErr(path, "node %q: weight %d since %s: versions ascend, and no weight is above %d", n.ID, s.Weight, s.Since, n.Peak)
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
	tagTenureMoved
	tagTenureSteps
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
	w.versionField(tagTenureMoved, r.Moved)
	w.bytesField(tagTenureSteps, encodeSteps(r.Nodes))
	return w.b
}

// encodeSteps returns nothing if no node has any.
func encodeSteps(nodes []NodeTenure) []byte {
	var w writer
	var n uint64
	for i, node := range nodes {
		if len(node.Steps) == 0 {
			continue
		}
		n++
		w.uvarint(uint64(i))
		w.uvarint(uint64(node.Least))
		w.uvarint(uint64(len(node.Steps)))
		for _, s := range node.Steps {
			w.version(s.Since)
			w.uvarint(uint64(s.Weight))
		}
	}
	if n == 0 {
		return nil
	}
	var all writer
	all.uvarint(n)
	return append(all.b, w.b...)
}

func (r *reader) steps(t *Tenure) {
	last := -1
	for range r.count(6) {
		i := int(r.uint(MaxTenures, "position of a tenure"))
		if r.err != nil || i >= len(t.Nodes) || i <= last {
			r.fail("weights of tenure %d of %d after %d", i, len(t.Nodes), last)
			return
		}
		last = i
		n := &t.Nodes[i]
		n.Least = uint32(r.uint(MaxWeight, "weight"))
		n.Steps = make([]WeightStep, r.count(3))
		for k := range n.Steps {
			n.Steps[k] = WeightStep{r.version(), uint32(r.uint(MaxWeight, "weight"))}
		}
		if len(n.Steps) == 0 {
			r.fail("tenure %d has no weights", i)
		}
	}
}

func decodeTenure(r *reader) *Tenure {
	t := new(Tenure)
	r.fields("tenure", []uint64{tagTenureFloor, tagTenureNodes, tagTenureMoved, tagTenureSteps}, func(tag uint64, p *reader) {
		switch tag {
		case tagTenureFloor:
			t.Floor = p.version()
		case tagTenureNodes:
			t.Nodes = make([]NodeTenure, p.count(7))
			for i := range t.Nodes {
				t.Nodes[i] = NodeTenure{ID: p.str(), Peak: uint32(p.uint(MaxWeight, "weight")), Gained: p.version(), Lost: p.version()}
			}
		case tagTenureMoved:
			t.Moved = p.version()
		case tagTenureSteps:
			p.steps(t)
		}
	})
	return t
}

// NewSince makes the object of KindSince for a table of so many rows: since[i] is
// the version at which entry i, rows one after another, last changed its server:
// since then its owner has served it without a gap, or is down, or nobody owns it.
// The zero version stands for an entry that nobody owned since the floor.
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
