package foreign

import (
	"bytes"
	"strings"

	"github.com/shardd/shardd/topology"
)

// parseMemcached reads lines of "host[:port] [weight]", the port 11211 if there is
// none, blank lines and comments behind '#'.
func parseMemcached(data []byte, o Options) (*draft, error) {
	if err := plainText(data); err != nil {
		return nil, err
	}
	d := &draft{spec: topology.Spec{Algorithm: topology.Compat, Compat: o.Compat}}
	if o.Compat.Mode == "" {
		d.spec.Compat.Mode = topology.ModeKetama
		d.note("the list does not say how clients map keys; taken is mode ketama (libmemcached's weighted ketama, PHP, pylibmc)")
	}
	line := 0
	for b := range bytes.Lines(data) {
		line++
		content, _, _ := strings.Cut(strings.TrimPrefix(string(b), "\uFEFF"), "#")
		words := strings.Fields(content)
		if len(words) == 0 {
			continue
		}
		if err := d.memcachedServer(line, words); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *draft) memcachedServer(line int, words []string) error {
	if len(words) > 2 || !serverText(words[0]) {
		return fault(line, "", "%q: want host:port and a weight", clipTo(strings.Join(words, " "), 80))
	}
	n := topology.Node{Addr: words[0], Weight: d.spec.Compat.DefaultWeight()}
	if !strings.HasPrefix(n.Addr, "/") && portOf(n.Addr) == "" {
		n.Addr = joinHostPort(n.Addr, "11211")
	}
	if len(words) == 2 {
		w, err := weight(words[1], 1, topology.MaxWeight)
		if err != nil {
			return fault(line, "", "weight %w", err)
		}
		n.Weight = w
	}
	d.add(line, n.Addr, n)
	return nil
}

// portOf returns the port behind the last colon of host:port or [v6]:port, "" if
// there is none.
func portOf(addr string) string {
	host, port, ok := cutLast(addr, ":")
	if !ok || !validPort(port) || strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		return ""
	}
	return port
}

// serverText says whether s may be a host with or without a port, or a path.
func serverText(s string) bool {
	if strings.HasPrefix(s, "/") {
		return len(s) > 1
	}
	if strings.HasPrefix(s, "[") {
		_, rest, ok := strings.Cut(s, "]")
		return ok && (rest == "" || rest[0] == ':' && validPort(rest[1:]))
	}
	host, port, ok := strings.Cut(s, ":")
	if strings.Contains(port, ":") { // a bare IPv6 address
		return strings.Trim(s, "0123456789abcdefABCDEF:.") == ""
	}
	return hostText(host) && (!ok || validPort(port))
}

func hostText(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_") == ""
}
