package foreign

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// twemproxyPassed are directives that decide nothing about where a key goes.
var twemproxyPassed = []string{"listen", "timeout", "backlog", "client_connections", "redis", "redis_auth", "redis_db", "preconnect",
	"server_connections", "server_retry_timeout", "server_failure_limit", "tcpkeepalive", "reuse_port", "slowlog_slower_than"}

func parseTwemproxy(data []byte, o Options) (*draft, error) {
	root, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	if root.kind != object {
		return nil, fault(root.line, "", "want a map of pools, not %s", root.kindName())
	}
	names := make([]string, len(root.fields))
	for i, f := range root.fields {
		names[i] = f.name
	}
	i, err := choose("pools", names, o)
	if err != nil {
		return nil, err
	}
	pool := root.fields[i]
	if pool.kind != object {
		return nil, fault(pool.line, pool.name, "want a pool's directives, not %s", pool.kindName())
	}
	if err := pool.unique(); err != nil {
		return nil, err
	}
	d := &draft{pool: pool.name, spec: topology.Spec{Algorithm: topology.Compat, Compat: topology.Foreign{Mode: topology.ModeTwemproxy}}}
	for _, f := range pool.fields {
		if err := d.twemproxyDirective(f); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *draft) twemproxyDirective(f member) error {
	c := &d.spec.Compat
	if f.name != "servers" && f.kind != text {
		return fault(f.line, f.name, "want one value, not %s", f.kindName())
	}
	switch f.name {
	case "servers":
		return d.twemproxyServers(f)
	case "distribution":
		if f.text == "random" {
			return fault(f.line, f.name, "random maps no key to a node, so there is nothing to keep; plan with the mapping you want instead")
		}
		c.Distribution = f.text
	case "hash":
		c.Hash = f.text
	case "hash_tag":
		if len(f.text) != 2 {
			return fault(f.line, f.name, "%q: twemproxy takes two characters", f.text)
		}
		c.HashTag = f.text
	case "auto_eject_hosts":
		if f.text == "true" {
			d.note("line %d: auto_eject_hosts moves the keys of a failing server while it is away; shardd never moves keys by health", f.line)
		}
	default:
		if !slices.Contains(twemproxyPassed, f.name) {
			return fault(f.line, f.name, "unknown directive; remove it if it decides nothing about where keys go")
		}
	}
	return validField(f, *c)
}

// validField refuses a name that the mode does not know, at the field that has it.
func validField(f member, c topology.Foreign) error {
	if err := (topology.Spec{Algorithm: topology.Compat, Compat: c}).Normal().Validate(); err != nil {
		return fault(f.line, f.name, "%w", reason(err))
	}
	return nil
}

func (d *draft) twemproxyServers(f member) error {
	if f.kind != list {
		return fault(f.line, f.name, "want a list of host:port:weight, not %s", f.kindName())
	}
	for _, s := range f.items {
		if s.kind != text {
			return fault(s.line, f.name, "want host:port:weight with an optional name, not %s", s.kindName())
		}
		if err := d.twemproxyServer(s.line, s.text); err != nil {
			return err
		}
	}
	return nil
}

// twemproxyServer reads "host:port:weight [name]" or "/path:weight [name]", from
// the end as twemproxy does.
func (d *draft) twemproxyServer(line int, entry string) error {
	bad := func() error {
		return fault(line, "servers", "%q: want host:port:weight or /path:weight, with an optional name behind a space", entry)
	}
	where, name, named := cutLast(entry, " ")
	if named && name == "" {
		return bad()
	}
	host, weightText, ok := cutLast(where, ":")
	if !ok {
		return bad()
	}
	w, err := weight(weightText, 1, topology.MaxWeight)
	if err != nil {
		return fault(line, "servers", "%q: weight %w", entry, err)
	}
	n := topology.Node{Weight: w}
	if strings.HasPrefix(entry, "/") {
		// Without a name, what is hashed runs up to the colon and has it.
		n.Addr, n.Label = "unix:"+host, host+":"
	} else {
		var port string
		if host, port, ok = cutLast(host, ":"); !ok || host == "" || !validPort(port) {
			return bad()
		}
		n.Addr = joinHostPort(host, port)
		n.Label = twemproxyLabel(host, port)
	}
	if named {
		n.Label = name
		d.add(line, name, n)
		return nil
	}
	d.add(line, n.Addr, n)
	return nil
}

// twemproxyLabel is what twemproxy hashes of a server without a name, where it is
// not what package compat makes of the address.
func twemproxyLabel(host, port string) string {
	p, err := strconv.Atoi(port)
	if err == nil && strconv.Itoa(p) == port && !strings.ContainsAny(host, "[]") && !strings.HasPrefix(host, "/") {
		return ""
	}
	if p == 11211 {
		return host
	}
	return host + ":" + port
}

// joinHostPort puts a bare IPv6 address into brackets.
func joinHostPort(host, port string) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
