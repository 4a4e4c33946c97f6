package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// haproxySection is a section of a HAProxy file.
type haproxySection struct {
	kind, name string
	line       int
	from       *haproxySection // the defaults that it inherits
	lines      []haproxyLine
	unsure     bool // stands under .if
}

// parseHAProxy reads a backend or listen section, with the defaults it inherits.
func parseHAProxy(data []byte, o Options) (*draft, error) {
	sections, err := haproxySplit(haproxyLines(data))
	if err != nil {
		return nil, err
	}
	var pools []*haproxySection
	var names []string
	for _, s := range sections {
		if s.kind == "backend" || s.kind == "listen" && slices.ContainsFunc(s.lines, func(l haproxyLine) bool { return strings.HasPrefix(l.words[0], "server") }) {
			pools, names = append(pools, s), append(names, s.name)
		}
	}
	i, err := choose("backends", names, o)
	if err != nil {
		return nil, err
	}
	return readBackend(pools[i])
}

// haproxySplit finds the sections and which defaults each inherits: those it
// names, else the last ones before it.
func haproxySplit(lines []haproxyLine) ([]*haproxySection, error) {
	var out []*haproxySection
	var defaults *haproxySection
	named := make(map[string]*haproxySection)
	nested := 0
	for _, l := range lines {
		first := l.words[0]
		switch first {
		case ".if":
			nested++
		case ".endif":
			nested--
		}
		if !haproxySections[first] {
			if len(out) > 0 {
				s := out[len(out)-1]
				s.lines, s.unsure = append(s.lines, l), s.unsure || nested > 0 || first == ".if"
			}
			continue
		}
		s := &haproxySection{kind: first, line: l.number, from: defaults, unsure: nested > 0}
		if len(l.words) > 1 && l.words[1] != "from" {
			s.name = l.words[1]
		}
		if i := slices.Index(l.words, "from"); i > 0 && i+1 < len(l.words) {
			if s.from = named[l.words[i+1]]; s.from == nil {
				return nil, fault(l.number, first, "no defaults section %q before this line", l.words[i+1])
			}
		} else if first == "defaults" {
			s.from = nil // a new one begins from nothing
		}
		if first == "defaults" {
			defaults, named[s.name] = s, s
		}
		out = append(out, s)
	}
	return out, nil
}

// backend is a section while it is read.
type backend struct {
	*draft
	balanced bool
	unread   error         // why the method is not read; a later one may take its place
	byID     bool          // a server says its id
	used     map[int]bool  // ids given
	defaults haproxyServer // default-server so far
	servers  []haproxyServer
}

func readBackend(s *haproxySection) (*draft, error) {
	b := &backend{draft: &draft{pool: s.name, spec: topology.Spec{Algorithm: topology.Compat, Compat: topology.Foreign{Mode: topology.ModeHAProxy}}}}
	b.defaults = haproxyServer{weight: 1}
	var chain []*haproxySection
	for at := s; at != nil && len(chain) <= maxDepth; at = at.from {
		chain = append(chain, at)
	}
	for _, at := range slices.Backward(chain) {
		if at.unsure {
			return nil, fault(at.line, at.kind, "stands under .if or has one; write out what holds")
		}
		for _, l := range at.lines {
			if err := b.directive(l); err != nil {
				return nil, err
			}
		}
	}
	if b.unread != nil {
		return nil, b.unread
	}
	if !b.balanced {
		return nil, fault(s.line, s.kind+" "+s.name, "no balance: round robin gives no key a server, so there is nothing to keep")
	}
	return b.draft, b.number()
}

func (b *backend) directive(l haproxyLine) error {
	name, args := l.words[0], l.words[1:]
	if name == "hash-preserve-affinity" && slices.Contains(args, "always") { // the default
		return nil
	}
	relevant := name == "balance" || strings.HasPrefix(name, "hash-") || strings.Contains(name, "server")
	switch reason, refused := haproxyRefused[name]; {
	case l.open:
		return fault(l.number, name, "a quote that is not closed")
	case relevant && l.env:
		return fault(l.number, name, "depends on the environment; write the value out")
	case refused && (name != "load-server-state-from-file" || !slices.Contains(args, "none")):
		return fault(l.number, name, "%s", reason)
	case name == "no", name == "default":
		return nil // switches options back
	}
	var err error
	switch name {
	case "balance":
		if b.unread = b.balance(args); b.unread != nil {
			b.unread = fault(l.number, name, "%w", b.unread)
		}
	case "hash-type":
		err = b.hashType(args)
	case "hash-balance-factor":
		err = b.bounded(args)
	case "default-server":
		err = b.defaults.parameters(args, b)
	case "server", "server-template":
		err = b.server(l.number, name, args)
	case "option":
		if len(args) > 0 && haproxyOptions[args[0]] {
			err = fmt.Errorf("%s sends requests to where they were going", args[0])
		}
		if len(args) > 0 && args[0] == "redispatch" {
			b.noteOnce("option redispatch sends a request elsewhere when its server does not answer; shardd never moves keys by health")
		}
	default:
		if !haproxyPassed[name] {
			err = fmt.Errorf("unknown directive; remove it if it decides nothing about where keys go")
		}
	}
	if err != nil {
		return fault(l.number, name, "%w", err)
	}
	return nil
}

// balance reads the method; what is hashed of a request is for the caller to know,
// except for URIs, of which the mode takes the part.
func (b *backend) balance(args []string) error {
	c := &b.spec.Compat
	c.Input, c.Depth, b.balanced = "", 0, true
	if len(args) == 0 {
		return fmt.Errorf("want a method")
	}
	method, rest := args[0], args[1:]
	switch {
	case method == "uri":
		return b.uri(rest)
	case method == "hash" && len(rest) > 0:
		b.note("keys are the values of %s", strings.Join(rest, " "))
	case method == "url_param" && len(rest) > 0:
		b.note("keys are the values of the parameter %s; a request without it goes round robin", rest[0])
	case strings.HasPrefix(method, "hdr("), strings.HasPrefix(method, "rdp-cookie"):
		if slices.Contains(rest, "use_domain_only") {
			return fmt.Errorf("use_domain_only hashes a part of the header that no mode takes out")
		}
		b.note("keys are the values of %s; a request without it goes round robin", method)
	case method == "source":
		return fmt.Errorf("source hashes the client's address in a way that no mode has")
	case slices.Contains([]string{"roundrobin", "static-rr", "leastconn", "first", "random", "sticky", "log-hash"}, method), strings.HasPrefix(method, "random("):
		return fmt.Errorf("%s gives no key a server, so there is nothing to keep", method)
	default:
		return fmt.Errorf("unknown method %q", strings.Join(args, " "))
	}
	return nil
}

func (b *backend) uri(args []string) error {
	c := &b.spec.Compat
	c.Input = "uri"
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "whole":
			c.Input = "uri-whole"
		case "path-only":
			b.note("keys are paths, without scheme and host")
		case "depth":
			if i++; i == len(args) {
				return fmt.Errorf("depth without a number")
			}
			d, err := weight(args[i], 1, 255)
			if err != nil {
				return fmt.Errorf("depth %w", err)
			}
			c.Depth = d
		default:
			return fmt.Errorf("uri %s is not read; no mode has it", args[i])
		}
	}
	return nil
}

// hashType reads "METHOD [FUNCTION [avalanche]]". Consistent without a function
// has the avalanche that it lacks with one.
func (b *backend) hashType(args []string) error {
	if len(args) < 1 || len(args) > 3 {
		return fmt.Errorf("want a method, a function and a modifier")
	}
	c := &b.spec.Compat
	c.Distribution, c.Hash, c.Avalanche = args[0], "", false
	if len(args) > 1 {
		c.Hash = args[1]
	}
	if len(args) > 2 {
		if args[2] != "avalanche" {
			return fmt.Errorf("unknown modifier %q", args[2])
		}
		c.Avalanche = true
	}
	return reasonOf(*c)
}

func reasonOf(c topology.Foreign) error {
	if err := (topology.Spec{Algorithm: topology.Compat, Compat: c}).Normal().Validate(); err != nil {
		return reason(err)
	}
	return nil
}

func (b *backend) bounded(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one number")
	}
	f, err := weight(args[0], 0, 65_535)
	if err != nil || f > 0 && f <= 100 {
		return fmt.Errorf("%q: want 0, or more than 100", args[0])
	}
	b.spec.BoundedLoad = float64(f) / 100
	if f > 0 {
		b.noteOnce("hash-balance-factor sends keys of a busy server to the next one; bounded_load does the same by this system's own counts")
	}
	return nil
}

// number adds the servers as nodes. Where a server says its id, each gets the id
// that HAProxy gives it as label: its place in the list, or the next one that is
// free.
func (b *backend) number() error {
	next := 1
	for i, s := range b.servers {
		id := s.id
		if id == 0 {
			for b.used[next] {
				next++
			}
			id = next
			b.mark(id)
		}
		next++
		n := topology.Node{Addr: s.addr, Weight: s.weight, Position: uint32(i + 1)}
		if s.disabled {
			n.State = topology.StateDown
		}
		if b.byID {
			n.Label = strconv.Itoa(id)
		}
		if s.backup {
			b.noteOnce("backup servers take no part while another server is up, and are left out")
			continue
		}
		b.add(s.line, s.name, n)
	}
	return nil
}

func (b *backend) mark(id int) {
	if b.used == nil {
		b.used = make(map[int]bool)
	}
	b.used[id] = true
}
