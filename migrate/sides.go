package migrate

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Import says how a side is read that is another system's configuration.
type Import struct {
	// Format is the file's; "" = recognised by its content.
	Format foreign.Format
	// Pool and Compat are as in foreign.Options.
	Pool   string
	Compat topology.Foreign
}

// Sides loads both sides of a plan, as Source and Target do. Where one of them is
// another system's configuration, it is taken for the same cluster, and its nodes
// for those of the other side that have the same address, whatever the names:
// identity is by id, and another system's file has none. Errors: as Source and
// Target.
func (l Loader) Sides(ctx context.Context, fromRef, toRef string) (from, to Side, err error) {
	was, err := l.look(ctx, fromRef, l.From)
	if err != nil {
		return from, to, fmt.Errorf("--from: %w", err)
	}
	next, err := l.look(ctx, toRef, l.To)
	if err != nil {
		return from, to, fmt.Errorf("--to: %w", err)
	}
	if was.foreign {
		if err := l.join(ctx, &was, toRef, next); err != nil {
			return from, to, fmt.Errorf("--to: %w", err)
		}
	}
	if from, err = l.source(ctx, fromRef, was); err != nil {
		return from, to, fmt.Errorf("--from: %w", err)
	}
	if to, err = l.target(ctx, from, toRef, next); err != nil {
		return from, to, fmt.Errorf("--to: %w", err)
	}
	return from, to, nil
}

// join makes was, another system's configuration, one of the cluster that next is
// of.
func (l Loader) join(ctx context.Context, was *seen, toRef string, next seen) error {
	if next.foreign {
		l.adopt(&was.read.Declared, next.read.Declared.Cluster, next.read.Declared.Nodes)
		return nil
	}
	to, err := l.load(ctx, toRef, nil, next.data)
	if err != nil {
		return err
	}
	t := to.Table.Topology()
	l.adopt(&was.read.Declared, t.Cluster(), t.Nodes())
	return nil
}

// seen is what a reference stands for, read once: a pipe cannot be read again.
type seen struct {
	data    []byte // of a file
	foreign bool
	read    foreign.Result // if foreign
	name    string         // without a password
}

func (l Loader) source(ctx context.Context, ref string, s seen) (Side, error) {
	if s.foreign {
		return foreignSide(s.name, s.read, nil)
	}
	return l.load(ctx, ref, nil, s.data)
}

func (l Loader) target(ctx context.Context, from Side, ref string, s seen) (Side, error) {
	t := from.Table.Topology()
	if s.foreign {
		l.adopt(&s.read.Declared, t.Cluster(), t.Nodes())
		return foreignSide(s.name, s.read, from.Table)
	}
	to, err := l.load(ctx, ref, from.Table, s.data)
	if err != nil {
		return Side{}, err
	}
	if a, b := t.Cluster(), to.Table.Topology().Cluster(); a != b {
		return Side{}, fmt.Errorf("%w: %s is of cluster %q, %s of cluster %q; a plan is about one cluster: if the same is meant, write cluster: %s in a copy of %s", ErrCluster, from.Name, a, to.Name, b, a, to.Name)
	}
	return to, nil
}

// look reads what ref stands for, unless that is a version, and tells whether it
// is another system's configuration.
func (l Loader) look(ctx context.Context, ref string, how Import) (seen, error) {
	if _, err := topology.ParseVersion(ref); err == nil || ref == Current {
		if how != (Import{}) {
			return seen{}, &fileError{fmt.Errorf("migrate: %q is a version of this system and has no format, pool or mapping of another", ref)}
		}
		return seen{}, nil
	}
	if strings.Contains(ref, "://") {
		return l.remote(ctx, ref)
	}
	b, err := l.read(ref)
	if err != nil {
		return seen{}, &fileError{err}
	}
	format, ok := how.Format, how.Format != ""
	if !ok && !topology.IsSaved(b) {
		format, ok = foreign.Detect(b)
	}
	switch {
	case ok:
		r, err := foreign.Parse(format, ref, b, foreign.Options{Pool: how.Pool, Compat: how.Compat})
		return l.taken(ref, r, err)
	case how != Import{}:
		return seen{}, &fileError{fmt.Errorf("migrate: %s: the format is not recognised; name it, one of %s", ref, foreign.Names(foreign.Readable()))}
	}
	return seen{data: b}, nil
}

func (l Loader) remote(ctx context.Context, ref string) (seen, error) {
	if l.Remote == nil {
		return seen{}, &fileError{fmt.Errorf("migrate: %q is an address, and nothing here reads it; give a file", WithoutSecret(ref))}
	}
	r, err := l.Remote(ctx, ref)
	return l.taken(WithoutSecret(ref), r, err)
}

// WithoutSecret writes a reference for people to read: an address without its
// password.
func WithoutSecret(ref string) string {
	if !strings.Contains(ref, "://") {
		return ref
	}
	if u, err := url.Parse(ref); err == nil {
		return u.Redacted()
	}
	scheme, _, _ := strings.Cut(ref, "://")
	return scheme + "://..."
}

// taken passes notes on, and refuses what gives no mapping.
func (l Loader) taken(ref string, r foreign.Result, err error) (seen, error) {
	if err == nil && r.NodesOnly {
		err = fmt.Errorf("migrate: %s: a %s file gives nodes but no mapping that this system computes; import it, choose an algorithm, and give the result", ref, r.Format)
	}
	if err != nil {
		return seen{}, &fileError{err}
	}
	for _, n := range r.Notes {
		l.note(ref + ": " + n)
	}
	return seen{foreign: true, read: r, name: ref}, nil
}

func (l Loader) note(text string) {
	if l.Note != nil {
		l.Note(text)
	}
}

func foreignSide(ref string, r foreign.Result, from *placement.Table) (Side, error) {
	table, err := Next(from, r.Declared)
	if err != nil {
		return Side{}, &fileError{fmt.Errorf("migrate: %s: %w", ref, err)}
	}
	return Side{Name: ref, Table: table}, nil
}

// adopt makes d one of the cluster of this name, and gives its nodes the ids of
// known nodes at the same address. What is hashed stays as it was.
func (l Loader) adopt(d *topology.Declared, cluster string, known []topology.Node) {
	d.Cluster = cluster
	ids, matched := sameAddress(d.Nodes, known), 0
	used := make(map[string]bool, len(d.Nodes))
	for i, id := range ids {
		if id != "" {
			rename(d, i, id)
			used[id] = true
			matched++
		}
	}
	for i, id := range ids {
		for n := 2; id == "" && used[d.Nodes[i].ID]; n++ {
			rename(d, i, fmt.Sprintf("%.100s-%d", d.Nodes[i].ID, n))
		}
		used[d.Nodes[i].ID] = true
	}
	if matched > 0 {
		l.note(fmt.Sprintf("%d of %d nodes are taken for those at the same address on the other side", matched, len(d.Nodes)))
	}
}

// sameAddress returns for each node the id of the known node with its address, ""
// if there is none or the address is there twice.
func sameAddress(nodes, known []topology.Node) []string {
	ids, twice := make(map[string]string), make(map[string]int)
	for _, n := range known {
		ids[n.Addr] = n.ID
		twice[n.Addr]++
	}
	seen := make(map[string]int)
	for _, n := range nodes {
		seen[n.Addr]++
	}
	out := make([]string, len(nodes))
	for i, n := range nodes {
		if n.Addr != "" && twice[n.Addr] == 1 && seen[n.Addr] == 1 {
			out[i] = ids[n.Addr]
		}
	}
	return out
}

func rename(d *topology.Declared, i int, id string) {
	n := &d.Nodes[i]
	hashed := d.Spec.Compat.HashedText(*n)
	n.ID = id
	if d.Spec.Compat.HashedText(*n) != hashed {
		n.Label = hashed
	}
}
