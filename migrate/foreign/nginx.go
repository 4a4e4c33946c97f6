package foreign

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/shardd/shardd/topology"
)

// nginxPassed are directives of an upstream that decide nothing about where a key
// goes.
var nginxPassed = []string{"zone", "keepalive", "keepalive_requests", "keepalive_time", "keepalive_timeout", "ntlm", "resolver", "resolver_timeout", "queue"}

// nginxRefused are those that do, with the reason why they are not read.
var nginxRefused = map[string]string{
	"least_conn": "sends keys by load, so no key has a node; nothing to keep",
	"least_time": "sends keys by load, so no key has a node; nothing to keep",
	"random":     "sends keys by chance, so no key has a node; nothing to keep",
	"fair":       "sends keys by load, so no key has a node; nothing to keep",
	"sticky":     "sends requests by a cookie or a table rather than by a key",
	"state":      "the servers stand in another file; give what nginx -T and its state file say as server lines",
	"include":    "is not followed; give the file as nginx -T prints it",
}

// parseNginx reads an upstream block, alone or in a whole nginx.conf.
func parseNginx(data []byte, o Options) (*draft, error) {
	all, err := parseNginxFile(data)
	if err != nil {
		return nil, err
	}
	var found []statement
	include := 0
	walkNginx(all, func(s statement) {
		switch {
		case s.words[0] == "upstream" && s.braces && len(s.words) == 2:
			found = append(found, s)
		case s.words[0] == "include" && include == 0:
			include = s.line
		}
	})
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.words[1]
	}
	i, err := choose("upstream blocks", names, o)
	if err != nil && include > 0 && !slices.Contains(names, o.Pool) {
		return nil, fault(include, "include", "%s; includes are not followed: give what nginx -T prints", strings.TrimPrefix(err.Error(), ": "))
	}
	if err != nil {
		return nil, err
	}
	return readUpstream(found[i])
}

// walkNginx calls fn for every statement that is not within an upstream block.
func walkNginx(list []statement, fn func(statement)) {
	for _, s := range list {
		fn(s)
		if s.words[0] != "upstream" {
			walkNginx(s.block, fn)
		}
	}
}

func readUpstream(u statement) (*draft, error) {
	d := &draft{pool: u.words[1], spec: topology.Spec{Algorithm: topology.Compat}}
	for _, s := range u.block {
		if err := d.upstreamDirective(s); err != nil {
			return nil, err
		}
	}
	if d.spec.Compat.Mode == "" {
		return nil, fault(u.line, "upstream "+d.pool, "no hash or ip_hash: round robin gives no key a node, so there is nothing to keep")
	}
	return d, nil
}

func (d *draft) upstreamDirective(s statement) error {
	name, args := s.words[0], s.words[1:]
	switch reason, refused := nginxRefused[name]; {
	case refused:
		return fault(s.line, name, "%s", reason)
	case name == "server":
		return d.nginxServer(s.line, args)
	case name == "hash":
		if len(args) < 1 || len(args) > 2 || len(args) == 2 && args[1] != "consistent" {
			return fault(s.line, name, "want hash KEY or hash KEY consistent")
		}
		mode := topology.ModeNginxHash
		if len(args) == 2 {
			mode = topology.ModeNginx
		}
		d.note("keys are what %s stands for in a request", args[0])
		return d.nginxMethod(s, mode)
	case name == "ip_hash":
		return d.nginxMethod(s, topology.ModeNginxIPHash)
	case !slices.Contains(nginxPassed, name):
		return fault(s.line, name, "unknown directive; remove it if it decides nothing about where keys go")
	}
	return nil
}

func (d *draft) nginxMethod(s statement, m topology.Mode) error {
	if d.spec.Compat.Mode != "" {
		return fault(s.line, s.words[0], "the upstream has a method already; remove one")
	}
	d.spec.Compat.Mode = m
	return nil
}

// nginxServer reads "ADDRESS parameters". nginx hashes the text of the address.
func (d *draft) nginxServer(line int, args []string) error {
	if len(args) == 0 || args[0] == "" {
		return fault(line, "server", "want an address")
	}
	n := topology.Node{Addr: args[0], Weight: 1}
	if !strings.HasPrefix(n.Addr, "unix:") {
		if portOf(n.Addr) == "" {
			n.Addr, n.Label = n.Addr+":80", n.Addr
		}
		if host := strings.TrimSuffix(n.Addr, ":"+portOf(n.Addr)); !isIP(host) {
			d.noteOnce("nginx shares the keys of a host name among all its addresses; shardd has one node for it")
		}
	}
	for _, p := range args[1:] {
		if err := d.nginxParameter(line, &n, p); err != nil {
			return err
		}
	}
	d.add(line, args[0], n)
	return nil
}

func (d *draft) nginxParameter(line int, n *topology.Node, p string) error {
	name, v, _ := strings.Cut(p, "=")
	switch name {
	case "weight":
		w, err := weight(v, 1, topology.MaxWeight)
		if err != nil {
			return fault(line, "server "+name, "%w", err)
		}
		n.Weight = w
	case "down":
		n.State = topology.StateDown
	case "max_conns":
		if v != "0" {
			d.noteOnce("max_conns sends keys of a full server to the next one; shardd does so with bounded_load only")
		}
	case "max_fails", "fail_timeout", "slow_start", "resolve":
	case "backup":
		return fault(line, "server "+name, "nginx takes no backup servers beside hash or ip_hash")
	default:
		return fault(line, "server "+name, "unknown parameter; remove it if it decides nothing about where keys go")
	}
	return nil
}

func isIP(host string) bool {
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
