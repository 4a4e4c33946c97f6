package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// ErrCannot says that the target does not compute this mapping. The message says what can
// be done instead.
var ErrCannot = errors.New("foreign: the target cannot compute this mapping")

// cannot is ErrCannot with a message of its own.
type cannot string

func (c cannot) Error() string { return string(c) }

func (c cannot) Is(target error) bool { return target == ErrCannot }

func refuse(format string, args ...any) error { return cannot(fmt.Sprintf(format, args...)) }

// ExportOptions say what the target's file has besides the mapping.
type ExportOptions struct {
	// Name is that of the pool, upstream, backend or cluster; "" = the
	// cluster's.
	Name string
	// Key is what is hashed of a request: nginx, default $request_uri; haproxy,
	// default hdr(x-key) where the mapping does not say it is the URI.
	Key string
	// Lines are further lines of the pool, upstream or backend, as they are, such
	// as "redis: true", "keepalive 32;" or "option httpchk". They are checked as
	// Parse does: a directive that decides where keys go is refused.
	Lines []string
}

// Exported is a file for another system.
type Exported struct {
	Data  []byte
	Notes []string // one line each
}

func (e *Exported) note(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

// listing is a mapping while it is written.
type listing struct {
	*Exported
	b     bytes.Buffer
	o     ExportOptions
	table *placement.Table
	spec  topology.Spec
	nodes []topology.Node // in the order of their positions
	wrote []string        // ids of those that the file has, in its order
	// compat and pool are how the file is read again.
	compat topology.Foreign
}

// writers has a line for each format that can be written. It is never changed.
var writers = map[Format]func(*listing) error{
	Twemproxy: writeTwemproxy, Nginx: writeNginx, HAProxy: writeHAProxy, EnvoyEDS: writeEnvoy,
	Mcrouter: writeMcrouter, RedisCLI: writeRedisCLI,
}

// Export writes the mapping of table as format f, deterministically. What it
// returns has been read again and compared where Parse knows the format. Errors
// wrap ErrCannot where f does not compute the mapping.
func Export(f Format, table *placement.Table, o ExportOptions) (Exported, error) {
	write, ok := writers[f]
	if !ok {
		return Exported{}, fmt.Errorf("foreign: format %q cannot be written; known are %s", f, Names(Writable()))
	}
	t := table.Topology()
	if table.Moving() {
		return Exported{}, refuse("%s: version %s is on its way to another one, and no other system takes the steps; wait for the last one", f, t.Version())
	}
	if o.Name == "" {
		o.Name = t.Cluster()
	}
	if err := checkName(o.Name); err != nil {
		return Exported{}, err
	}
	l := &listing{Exported: &Exported{}, o: o, table: table, spec: t.Spec(), nodes: topology.InOrder(t.Nodes())}
	if err := write(l); err != nil {
		return Exported{}, fmt.Errorf("foreign: %w", err)
	}
	l.Data = l.b.Bytes()
	if err := l.commonNotes(f); err != nil {
		return Exported{}, err
	}
	if _, readable := parsers[f]; readable {
		if err := l.verify(f); err != nil {
			return Exported{}, err
		}
	}
	return *l.Exported, nil
}

// checkName refuses what would need quotes in one of the formats.
func checkName(name string) error {
	if name == "" || strings.Trim(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_") != "" {
		return fmt.Errorf("foreign: name %q: use letters, digits, '.', '-' and '_'", name)
	}
	return nil
}

func (l *listing) commonNotes(f Format) error {
	if l.spec.Replicas > 1 && f != RedisCLI {
		l.note("%s knows one owner a key; the other %d replicas are left out", f, l.spec.Replicas-1)
	}
	if l.spec.BoundedLoad > 0 && f != HAProxy {
		l.note("bounded_load is left out; it is not part of the mapping")
	}
	if len(l.wrote) == 0 {
		return refuse("%s: no node owns anything, so there is nothing to write", f)
	}
	return nil
}

// foreignMode returns the foreign mapping if its mode is among modes, and else
// refuses with what can be done.
func (l *listing) foreignMode(target string, modes ...topology.Mode) (topology.Foreign, error) {
	c := l.spec.Compat
	for _, m := range modes {
		if c.Mode == m {
			return c, nil
		}
	}
	have := "algorithm " + string(l.spec.Algorithm)
	if c.Mode != "" {
		have = "mode " + string(c.Mode)
	}
	return c, refuse("%s computes no %s; publish a mapping that it does (compat: {mode: %s}) and see first what that moves: migrate plan --from FILE --to FILE", target, have, modes[0])
}

// extra writes the caller's lines.
func (l *listing) extra(indent string) error {
	for _, line := range l.o.Lines {
		if strings.ContainsAny(line, "\n\r{}") {
			return fmt.Errorf("line %q: want one line without braces", line)
		}
		l.b.WriteString(indent + line + "\n")
	}
	return nil
}

// verify reads what was written and compares the mapping.
func (l *listing) verify(f Format) error {
	o := Options{Pool: l.o.Name, Cluster: l.table.Topology().Cluster()}
	if f == EnvoyEDS {
		o.Compat = l.compat
	}
	r, err := Parse(f, "output", l.Data, o)
	if err != nil {
		return fmt.Errorf("%s: what was written does not read back: %w", f, err)
	}
	return l.same(f, r.Declared)
}

// Same says whether data is what Export writes for table under o, which reads back
// as the same mapping; nil = yes.
func Same(f Format, data []byte, table *placement.Table, o ExportOptions) error {
	again, err := Export(f, table, o)
	if err != nil {
		return err
	}
	if !bytes.Equal(again.Data, data) {
		return fmt.Errorf("foreign: the %s file differs from what the mapping of version %s gives", f, table.Topology().Version())
	}
	return nil
}

// same compares what was read with what was to be written, node by node.
func (l *listing) same(f Format, d topology.Declared) error {
	if len(d.Nodes) != len(l.wrote) {
		return fmt.Errorf("%s: %d of %d nodes read back", f, len(d.Nodes), len(l.wrote))
	}
	for i := range d.Nodes {
		d.Nodes[i].ID = l.wrote[i]
	}
	d.Spec.Replicas, d.Spec.BoundedLoad = 1, 0
	draft := topology.Draft{Cluster: d.Cluster, ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: d.Spec, Nodes: d.Nodes}
	read, err := placement.Update(nil, draft)
	if err != nil {
		return fmt.Errorf("%s: what was written gives no mapping: %w", f, err)
	}
	own := l.table.Topology().Draft()
	own.ID, own.History, own.Version = draft.ID, 1, draft.Version
	own.Spec.Replicas, own.Spec.BoundedLoad = 1, 0
	have, err := placement.Update(nil, own)
	if err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	report, err := placement.MovementWith(have, read, placement.MovementOptions{MaxFlows: 1, SampleKeys: 4096})
	if err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	ratio := report.Ratio
	if report.Sample != nil { // by the law of hashes that know nothing of each other, but these may be the same
		ratio = report.Sample.Ratio
	}
	if ratio != 0 {
		return refuse("%s: %.2g %% of the keys would have another node than here (order of equal points, or rounding of weights); change labels, order or weights, or export from the mode itself", f, 100*ratio)
	}
	return nil
}

// owners are the nodes that own keys by weight, and whether each is down.
func (l *listing) owners() []topology.Node {
	var out []topology.Node
	for _, n := range l.nodes {
		if n.OwnerWeight() > 0 {
			out = append(out, n)
		}
	}
	return out
}

// hostPort takes an address apart; host without brackets.
func hostPort(n topology.Node, otherwise string) (host, port string, err error) {
	port = portOf(n.Addr)
	host = strings.TrimSuffix(n.Addr, ":"+port)
	if port == "" {
		host, port = n.Addr, otherwise
	}
	host = strings.Trim(host, "[]")
	if host == "" || port == "" || strings.ContainsAny(host, " \t\"'{};#/") {
		return "", "", fmt.Errorf("node %q: %q is no host:port; give it an address", n.ID, n.Addr)
	}
	return host, port, nil
}

// plain says whether s needs no quotes in any of the formats.
func plain(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_:/[]@") == ""
}
