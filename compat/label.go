package compat

import (
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// memcachedPort is what ketama labels leave out.
const memcachedPort = 11211

// label returns what f hashes of a node.
func label(f topology.Foreign, n topology.Node) string {
	text := f.HashedText(n)
	if n.Label != "" && f.Mode != topology.ModeNginx && f.Mode != topology.ModeMemcachedFast {
		return text // a name, taken as it is
	}
	switch f.Mode {
	case topology.ModeKetama, topology.ModeTwemproxy, topology.ModeLibmemcached:
		if f.Distribution == "ketama_spy" {
			return spyLabel(text)
		}
		return withoutPort(text, memcachedPort)
	case topology.ModeNpmHashring:
		if f.DefaultPort != 0 {
			return strings.TrimSuffix(text, ":"+strconv.FormatUint(uint64(f.DefaultPort), 10))
		}
	}
	return text
}

// withoutPort is libmemcached's label: host where the port is the given one or
// absent, else host:port.
func withoutPort(addr string, port int) string {
	host, p := splitAddr(addr)
	if p == port || p < 0 || strings.HasPrefix(addr, "/") {
		return host
	}
	return host + ":" + strconv.Itoa(p)
}

// spyLabel is libmemcached's KETAMA_SPY: the port is always there.
func spyLabel(addr string) string {
	host, p := splitAddr(addr)
	if p < 0 {
		p = memcachedPort
	}
	return "/" + host + ":" + strconv.Itoa(p)
}

// splitAddr takes host:port apart; port is -1 if there is none. The brackets of
// an IPv6 address go, as the libraries get it without.
func splitAddr(addr string) (host string, port int) {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 || !digits(addr[i+1:]) || strings.IndexByte(addr, ':') < i && !strings.HasPrefix(addr, "[") {
		return strings.Trim(addr, "[]"), -1
	}
	port, err := strconv.Atoi(addr[i+1:])
	if err != nil {
		return addr, -1
	}
	return strings.Trim(addr[:i], "[]"), port
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// splitNginx takes the text of nginx's server directive apart, which has no
// default port here.
func splitNginx(text string) (host, port string) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		return path, ""
	}
	if i := strings.LastIndexByte(text, ':'); i >= 0 && digits(text[i+1:]) {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// numberServers gives HAProxy's server ids: that of the label, else the
// position, or the next one that is free. Its counter goes on with every server,
// and from what it gave out: that of the third server begins at 4 if the first
// had to take 2.
func numberServers(list []server) {
	used := make(map[uint32]bool)
	for i := range list {
		if id, err := strconv.ParseUint(list[i].Label, 10, 31); err == nil {
			list[i].id = uint32(id)
			used[list[i].id] = true
		}
	}
	next := uint32(1)
	for i := range list {
		next = max(next, list[i].Position)
		if list[i].id == 0 {
			for used[next] {
				next++
			}
			list[i].id = next
			used[next] = true
		}
		next++
	}
}
