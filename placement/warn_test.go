package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardd/shardd/topology"
)

// memcacheds are n nodes of weight 1 on this port.
func memcacheds(n, port int) []topology.Node {
	nodes := make([]topology.Node, n)
	for i := range nodes {
		nodes[i] = topology.Node{ID: fmt.Sprintf("n%02d", i), Addr: fmt.Sprintf("10.0.1.%d:%d", i+1, port), Weight: 1, Position: uint32(i + 1)}
	}
	return nodes
}

// Each warning comes where it must, with its number, and nowhere else.
func TestWarnings(t *testing.T) {
	f := func(foreign topology.Foreign, nodes []topology.Node, want ...string) {
		t.Helper()
		var got []string
		for _, w := range Warnings(first(t, foreignSpec(foreign), nodes)) {
			got = append(got, w.Code+": "+w.Message)
			if w.Hint == "" {
				t.Errorf("%s: no hint", w.Code)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d warnings, want %d: %q", foreignName(foreign), len(got), len(want), got)
			return
		}
		for i := range want {
			for part := range strings.SplitSeq(want[i], "...") {
				if !strings.Contains(got[i], part) {
					t.Errorf("%s: warning %q, want %q", foreignName(foreign), got[i], want[i])
				}
			}
		}
	}
	five := memcacheds(5, 7200)
	f(topology.Foreign{Mode: topology.ModeKetama}, five)
	f(topology.Foreign{Mode: topology.ModeNginx}, five)
	f(topology.Foreign{Mode: topology.ModeRedisSlots}, five)
	f(topology.Foreign{Mode: topology.ModeGoRedisRing}, five)
	f(topology.Foreign{Mode: topology.ModeTwemproxy, Hash: "crc32"}, five, "uneven-keys: of 10000 keys such as \"key:17\" node ... gets 100.0 %, 5.0 times...hash crc32 has 15 bits")
	f(topology.Foreign{Mode: topology.ModeLibmemcached, Distribution: "ketama", Hash: "fnv1a_64"}, memcacheds(5, 11211),
		"uneven-keys: ...times what its weight asks for: hash fnv1a_64 puts a server's points, and similar keys, side by side",
		"port-left-out: port 11211 is left out of the labels of 5 nodes: on another port they are other nodes, and 100.0 % of the keys move")
	f(topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "consistent", Hash: "sdbm"}, five, "few-points: some node has only 16 points")
	f(topology.Foreign{Mode: topology.ModeTwemproxy, Hash: "md5"}, memcacheds(25, 7200), "rounded-points: rounding in single precision leaves 25 of 25 nodes short of points: 100 of 4000 are not there")
	f(topology.Foreign{Mode: topology.ModeLafikl}, five, "few-points: some node has only 10 points on the ring (shares vary by about 32 %)")
	f(topology.Foreign{Mode: topology.ModeGomemcache}, five, "modulo: nodes are counted off: adding one to 5 moves 83.3 % of the keys, where 16.7 % would do")
	f(topology.Foreign{Mode: topology.ModeTwemproxy, Distribution: "modula"}, five, "uneven-keys: ...hash fnv1a_64 spreads similar keys that unevenly here", "modulo: ...adding one to 5 moves 83.3 %")
	f(topology.Foreign{Mode: topology.ModeLibmemcached}, five, "modulo: ...moves 83.3 %")
	f(topology.Foreign{Mode: topology.ModeNginxHash}, five, "modulo: ...moves 83.3 %")
	f(topology.Foreign{Mode: topology.ModeNginxIPHash}, five, "modulo: ...moves 83.")
	f(topology.Foreign{Mode: topology.ModeJump}, five, "list-order: ...removing the first moves ...where 20.0 % would do")
	f(topology.Foreign{Mode: topology.ModeCilium}, five, "stand-in: Cilium hashes the addresses of packets")
	f(topology.Foreign{Mode: topology.ModeEnvoyRing, Hash: "murmur2"}, five, "not-recorded: ")
	if got := Warnings(first(t, specOf("ring"), five)); got != nil {
		t.Errorf("a native ring: %v", got)
	}
	if got := Warnings(first(t, foreignSpec(topology.Foreign{Mode: topology.ModeGomemcache}), nil)); got != nil {
		t.Errorf("without nodes: %v", got)
	}
}
