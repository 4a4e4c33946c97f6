package foreign

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// draft is a cluster while it is read.
type draft struct {
	pool      string
	spec      topology.Spec
	nodes     []topology.Node
	lines     []int // of nodes
	notes     []string
	nodesOnly bool
	ids       map[string]int // how often each is used
}

func (d *draft) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// noteOnce adds a note unless it is there already.
func (d *draft) noteOnce(text string) {
	for _, n := range d.notes {
		if n == text {
			return
		}
	}
	d.notes = append(d.notes, text)
}

// add adds a node that the file calls name. Its id is the name in legal
// characters, with a number where the same one came before. A position of 0 is
// the next.
func (d *draft) add(line int, name string, n topology.Node) {
	if d.ids == nil {
		d.ids = make(map[string]int)
	}
	id := legalID(name)
	for d.ids[id] > 0 {
		d.ids[id]++
		id = clipTo(id, topology.MaxNameLen-8) + "-" + strconv.Itoa(d.ids[id])
	}
	d.ids[id]++
	n.ID = id
	if n.Position == 0 {
		n.Position = 1
		if len(d.nodes) > 0 {
			n.Position += d.nodes[len(d.nodes)-1].Position
		}
	}
	d.nodes, d.lines = append(d.nodes, n), append(d.lines, line)
}

// legalID writes name in the characters that a node id may have.
func legalID(name string) string {
	b := []byte(clipTo(name, topology.MaxNameLen))
	for i, c := range b {
		if c <= ' ' || c > '~' || c == '/' || c == ',' {
			b[i] = '_'
		}
	}
	if s := string(b); s != "" && s != "." && s != ".." {
		return s
	}
	return "node"
}

func clipTo(s string, n int) string { return s[:min(len(s), n)] }

// legalCluster writes name in the characters that a cluster's name may have.
func legalCluster(name string) string {
	b := []byte(clipTo(name, 63))
	for i, c := range b {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && c != '.' && c != '_' && c != '-' {
			b[i] = '-'
		}
	}
	if s := strings.TrimLeft(string(b), "._-"); s != "" {
		return s
	}
	return "imported"
}

// result checks the draft as a whole. What validation says of a node gets the
// line that the node stands on.
func (d *draft) result(f Format, o Options) (Result, error) {
	if len(d.nodes) == 0 {
		return Result{}, fault(0, "", "no servers in %s; nothing to import", quoted(d.pool, "the file"))
	}
	r := Result{Format: f, Pool: d.pool, Notes: d.notes, NodesOnly: d.nodesOnly}
	r.Declared = topology.Declared{Cluster: o.Cluster, Spec: d.spec.Normal(), Nodes: d.nodes}
	if o.Cluster == "" {
		r.Declared.Cluster = legalCluster(d.pool)
	}
	if r.Declared.Spec.Algorithm != topology.Compat {
		for i := range d.nodes {
			d.nodes[i].Position = 0
		}
	}
	err := r.Declared.Validate()
	if err == nil {
		return r, nil
	}
	e := &Error{Err: err}
	var field *topology.FieldError
	if errors.As(err, &field) {
		e.Directive, e.Err = field.Path, field.Err
		if i, ok := nodeOf(field.Path); ok && i < len(d.lines) {
			e.Line = d.lines[i]
		}
	}
	return Result{}, e
}

// nodeOf takes the index out of a path such as "nodes[3].label".
func nodeOf(path string) (int, bool) {
	rest, ok := strings.CutPrefix(path, "nodes[")
	number, _, closed := strings.Cut(rest, "]")
	i, err := strconv.Atoi(number)
	return i, ok && closed && err == nil && i >= 0
}

func quoted(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return strconv.Quote(name)
}

// choose returns the index of the pool that o asks for among names, which have
// lines; what says what a pool is called in this format.
func choose(what string, names []string, o Options) (int, error) {
	if o.Pool == "" {
		switch len(names) {
		case 0:
			return 0, fault(0, "", "no %s in the file", what)
		case 1:
			return 0, nil
		}
		return 0, fault(0, "", "%d of %s: %s; name one as the pool", len(names), what, listed(names))
	}
	at := -1
	for i, n := range names {
		if n != o.Pool {
			continue
		}
		if at >= 0 {
			return 0, fault(0, "", "two of %s are called %q; remove one", what, o.Pool)
		}
		at = i
	}
	if at < 0 {
		return 0, fault(0, "", "no %s %q in the file; it has %s", what, o.Pool, listed(names))
	}
	return at, nil
}

// listed writes the first names of a list.
func listed(names []string) string {
	const most = 12
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// weight reads a whole number from least on, in plain decimal digits.
func weight(text string, least, most uint64) (uint32, error) {
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil || v < least || v > most {
		return 0, fmt.Errorf("%q is no whole number from %d to %d", text, least, most)
	}
	return uint32(v), nil
}

func validPort(text string) bool {
	p, err := strconv.ParseUint(text, 10, 32)
	return err == nil && p > 0 && p <= 65535
}

// reason takes the path of a *topology.FieldError away: the file has its own
// names for things.
func reason(err error) error {
	var field *topology.FieldError
	if errors.As(err, &field) {
		return field.Err
	}
	return err
}
