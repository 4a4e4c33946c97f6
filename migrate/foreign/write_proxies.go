package foreign

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// twemproxyHashes are twemproxy's names for libmemcached's hashes, where they
// differ.
var twemproxyHashes = map[string]string{"crc": "crc32", "murmur3": ""}

// writeTwemproxy writes a pool. Besides its own mappings twemproxy computes those
// of the clients whose rings it took over, and of lists by remainder: there the
// names of servers bring them into the right order.
func writeTwemproxy(l *listing) error {
	c, err := l.foreignMode("twemproxy", topology.ModeTwemproxy, topology.ModeKetama, topology.ModeLibmemcached, topology.ModeLibketama,
		topology.ModeSpymemcached, topology.ModeNpmHashring, topology.ModeGomemcache, topology.ModeMemcachedFast)
	if err != nil {
		return err
	}
	pool, numbered, err := twemproxyPool(c)
	if err != nil {
		return err
	}
	fmt.Fprintf(&l.b, "%s:\n", l.o.Name)
	if !hasDirective(l.o.Lines, "listen") {
		l.b.WriteString("  listen: 127.0.0.1:22121\n")
	}
	fmt.Fprintf(&l.b, "  distribution: %s\n  hash: %s\n", pool.Distribution, pool.Hash)
	if pool.HashTag != "" {
		fmt.Fprintf(&l.b, "  hash_tag: %s\n", strconv.Quote(pool.HashTag))
	}
	if err := l.extra("  "); err != nil {
		return err
	}
	l.b.WriteString("  servers:\n")
	for i, n := range l.owners() {
		name := ""
		if numbered {
			name = fmt.Sprintf("s%05d", i)
		}
		if err := l.twemproxyServer(c, n, name); err != nil {
			return err
		}
	}
	return nil
}

// twemproxyPool returns how twemproxy would be set up for c, and whether names are
// there for their order only.
func twemproxyPool(c topology.Foreign) (pool topology.Foreign, numbered bool, err error) {
	pool = topology.Foreign{Mode: topology.ModeTwemproxy, Distribution: "ketama", Hash: c.Hash}
	switch {
	case c.Mode == topology.ModeTwemproxy:
		return c, false, nil
	case c.Mode == topology.ModeGomemcache:
		pool.Distribution, pool.Hash = "modula", "crc32a"
		return pool, true, nil
	case c.Mode == topology.ModeMemcachedFast && c.Points == 0:
		pool.Distribution, pool.Hash = "modula", "crc32"
		return pool, true, nil
	case c.Mode == topology.ModeMemcachedFast, c.Mode == topology.ModeLibmemcached && c.Distribution != "ketama_weighted",
		c.Mode == topology.ModeSpymemcached && c.Distribution != "ketama", c.Mode == topology.ModeNpmHashring && (c.Distribution != "ketama" || c.Hash != "md5"):
		return pool, false, refuse("twemproxy has no such ring; publish compat: {mode: twemproxy} and see first what that moves: migrate plan --from FILE --to FILE")
	}
	if pool.Hash == "" {
		pool.Hash = "md5"
	}
	if name, other := twemproxyHashes[pool.Hash]; other {
		pool.Hash = name
	}
	if pool.Hash == "" {
		return pool, false, refuse("twemproxy has no hash %s; publish compat: {mode: twemproxy} and see first what that moves: migrate plan --from FILE --to FILE", c.Hash)
	}
	return pool, false, nil
}

func hasDirective(lines []string, name string) bool {
	for _, l := range lines {
		if first, _, _ := strings.Cut(strings.TrimSpace(l), ":"); first == name {
			return true
		}
	}
	return false
}

func (l *listing) twemproxyServer(c topology.Foreign, n topology.Node, name string) error {
	path, unix := strings.CutPrefix(n.Addr, "unix:")
	if !unix && strings.HasPrefix(n.Addr, "/") {
		path, unix = n.Addr, true
	}
	where := path
	if !unix {
		host, port, err := hostPort(n, "11211")
		if err != nil {
			return err
		}
		where = host + ":" + port
	}
	switch portless := c.Mode == topology.ModeLibketama || c.Mode == topology.ModeSpymemcached || c.Mode == topology.ModeNpmHashring; {
	case name != "":
	case n.Label != "":
		name = n.Label
	case portless || unix: // these hash the text as it is
		name = c.HashedText(n)
		if p := ":" + strconv.FormatUint(uint64(c.DefaultPort), 10); c.DefaultPort != 0 {
			name = strings.TrimSuffix(name, p)
		}
	}
	if unix && name == path+":" {
		name = "" // twemproxy's own
	}
	w := n.Weight
	if !c.Weighted() {
		w = 1
	}
	entry := fmt.Sprintf("%s:%d", where, w)
	if name != "" {
		entry += " " + name
	}
	if name != "" && !plain(name) || !plain(where) {
		return fmt.Errorf("node %q: %q cannot be written as a server; use letters, digits and .-_:/ in address and label", n.ID, entry)
	}
	fmt.Fprintf(&l.b, "    - %s\n", entry)
	l.wrote = append(l.wrote, n.ID)
	return nil
}

// writeNginx writes an upstream block.
func writeNginx(l *listing) error {
	c, err := l.foreignMode("nginx", topology.ModeNginx, topology.ModeMemcachedFast, topology.ModeNginxHash, topology.ModeNginxIPHash)
	if err != nil {
		return err
	}
	key := l.o.Key
	if key == "" {
		key = "$request_uri"
	}
	if strings.ContainsAny(key, " \t\n\r;{}\"'\\#") {
		return fmt.Errorf("key %q: want variables and text without blanks, quotes and braces", key)
	}
	method := "hash " + key
	text := false // whether the text of the address is hashed
	switch {
	case c.Mode == topology.ModeNginx || c.Mode == topology.ModeMemcachedFast && c.Points == 160:
		method, text = method+" consistent", true
	case c.Mode == topology.ModeMemcachedFast && c.Points != 0:
		return refuse("nginx has 160 points a unit of weight, this mapping %d; see what another number moves: migrate plan --from FILE --to FILE", c.Points)
	case c.Mode == topology.ModeNginxIPHash:
		method = "ip_hash"
	}
	fmt.Fprintf(&l.b, "upstream %s {\n    %s;\n", l.o.Name, method)
	if err := l.extra("    "); err != nil {
		return err
	}
	for _, n := range l.owners() {
		if err := l.nginxServer(c, n, text); err != nil {
			return err
		}
	}
	l.b.WriteString("}\n")
	return nil
}

func (l *listing) nginxServer(c topology.Foreign, n topology.Node, text bool) error {
	addr := n.Addr
	if text {
		addr = c.HashedText(n)
		if n.Addr != "" && addr != n.Addr && addr+":80" != n.Addr {
			return refuse("node %q hashes as %q and lives at %s, but nginx hashes the address itself; name the address as label and see what that moves", n.ID, addr, n.Addr)
		}
	}
	if !plain(addr) {
		return fmt.Errorf("node %q: %q is no address for nginx", n.ID, addr)
	}
	fmt.Fprintf(&l.b, "    server %s", addr)
	if n.Weight != 1 {
		fmt.Fprintf(&l.b, " weight=%d", n.Weight)
	}
	if n.State == topology.StateDown && c.DownLeaves() {
		l.b.WriteString(" down")
	}
	l.b.WriteString(";\n")
	l.wrote = append(l.wrote, n.ID)
	return nil
}

// writeHAProxy writes a backend. Every server says its id, so that the file's
// order decides nothing.
func writeHAProxy(l *listing) error {
	c, err := l.foreignMode("haproxy", topology.ModeHAProxy)
	if err != nil {
		return err
	}
	balance, err := l.haproxyBalance(c)
	if err != nil {
		return err
	}
	fmt.Fprintf(&l.b, "backend %s\n    balance %s\n    hash-type %s %s", l.o.Name, balance, c.Distribution, c.Hash)
	if c.Avalanche {
		l.b.WriteString(" avalanche")
	}
	l.b.WriteByte('\n')
	if f := l.spec.BoundedLoad; f > 1 {
		fmt.Fprintf(&l.b, "    hash-balance-factor %d\n", int(f*100+0.5))
	}
	if err := l.extra("    "); err != nil {
		return err
	}
	names := make(map[string]bool)
	for _, s := range haproxyIDs(l.nodes) {
		name := haproxyName(s.node.ID)
		addr := haproxyText(s.node.Addr)
		if names[name] || addr == "" {
			return fmt.Errorf("node %q: %q at %q cannot be written as a server; use letters, digits and .-_: in ids, and give an address", s.node.ID, name, s.node.Addr)
		}
		names[name] = true
		fmt.Fprintf(&l.b, "    server %s %s id %d weight %d", name, addr, s.id, s.node.OwnerWeight())
		if s.node.State == topology.StateDown {
			l.b.WriteString(" disabled")
		}
		l.b.WriteByte('\n')
		l.wrote = append(l.wrote, s.node.ID)
	}
	return nil
}

func (l *listing) haproxyBalance(c topology.Foreign) (string, error) {
	balance := l.o.Key
	switch {
	case c.Input != "" && balance != "":
		return "", fmt.Errorf("key %q: the mapping says that the URI is hashed; leave the key out", balance)
	case c.Input == "uri":
		balance = "uri"
	case c.Input != "":
		balance = "uri whole"
	case balance == "":
		balance = "hdr(x-key)"
		l.note("requests are balanced by the header x-key; say what the key is in yours")
	case strings.ContainsAny(balance, "\n\r\"'\\#$"):
		return "", fmt.Errorf("key %q: want what stands behind balance, without quotes", balance)
	}
	if c.Depth > 0 {
		balance += fmt.Sprintf(" depth %d", c.Depth)
	}
	return balance, nil
}

// haproxyText writes an address as HAProxy has it, "" if it cannot.
func haproxyText(addr string) string {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		addr = "unix@" + path
	}
	if !plain(addr) {
		return ""
	}
	return addr
}

func haproxyName(id string) string {
	b := []byte(id)
	for i, c := range b {
		if !plain(string(c)) || c == '[' || c == ']' || c == '@' || c == '/' {
			b[i] = '_'
		}
	}
	return string(b)
}

// numbered is a server with its id.
type numbered struct {
	node topology.Node
	id   int
}

// haproxyIDs gives every node of the list its id: that of its label, or its place
// in the list or the next one that is free. Those that own nothing come behind, so
// that they take no id from one that does.
func haproxyIDs(nodes []topology.Node) []numbered {
	var out []numbered
	used := make(map[int]bool)
	for _, owns := range []bool{true, false} {
		from := len(out)
		for _, n := range nodes {
			if (n.OwnerWeight() > 0) != owns || n.State == topology.StateJoining || n.State == topology.StateLeft {
				continue
			}
			id, _ := strconv.Atoi(n.Label)
			if used[id] {
				id = 0
			}
			used[id] = true
			out = append(out, numbered{n, id})
		}
		next := 1
		for i := from; i < len(out); i++ {
			next = max(next, int(out[i].node.Position))
			if out[i].id == 0 {
				for used[next] {
					next++
				}
				out[i].id = next
				used[next] = true
			}
			next++
		}
	}
	return out
}
