package clusterfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/topology"
)

const compatNodes = "nodes:\n  - {id: b, addr: '10.0.0.2:1', label: '7', weight: 2}\n  - {id: a, addr: '10.0.0.1:1'}\n"

// A compat block stands instead of an algorithm; the file's order is the foreign
// system's, and what comes out can be written and read again.
func TestCompat(t *testing.T) {
	f := func(block string, want topology.Foreign) {
		t.Helper()
		d, err := Parse("c.yaml", []byte("cluster: c\ncompat: "+block+"\n"+compatNodes))
		if err != nil {
			t.Errorf("%s: %v", block, err)
			return
		}
		if diff := cmp.Diff(topology.Spec{Algorithm: topology.Compat, Replicas: 1, Compat: want}, d.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", block, diff)
		}
		again, err := Parse("again.yaml", Format(d))
		if err != nil {
			t.Errorf("%s: formatted: %v\n%s", block, err, Format(d))
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Errorf("%s: format and parse (-want +got):\n%s", block, diff)
		}
		if d.Nodes[0].Position != 1 || d.Nodes[1].Position != 2 {
			t.Errorf("%s: positions %d, %d", block, d.Nodes[0].Position, d.Nodes[1].Position)
		}
	}
	f("{mode: ketama}", topology.Foreign{Mode: topology.ModeKetama, Hash: "md5"})
	f("{mode: twemproxy}", topology.Foreign{Mode: topology.ModeTwemproxy, Distribution: "ketama", Hash: "fnv1a_64"})
	f(`{mode: twemproxy, distribution: modula, hash: crc32, hash_tag: "{}"}`, topology.Foreign{Mode: topology.ModeTwemproxy, Distribution: "modula", Hash: "crc32", HashTag: "{}"})
	f("{mode: nginx}", topology.Foreign{Mode: topology.ModeNginx})
	f("{mode: haproxy}", topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "map-based", Hash: "sdbm"})
	f("{mode: haproxy, hash_type: consistent}", topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "consistent", Hash: "sdbm", Avalanche: true})
	f("{mode: haproxy, hash_type: consistent, function: sdbm}", topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "consistent", Hash: "sdbm"})
	f("{mode: haproxy, hash_type: consistent, avalanche: false}", topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "consistent", Hash: "sdbm"})
	f("{mode: haproxy, hash_type: map-based, function: djb2, avalanche: true, input: uri, depth: 2}",
		topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "map-based", Hash: "djb2", Avalanche: true, Input: "uri", Depth: 2})
	f("{mode: libmemcached, distribution: ketama_weighted, hash: default, sort_hosts: false}",
		topology.Foreign{Mode: topology.ModeLibmemcached, Distribution: "ketama_weighted", Hash: "md5"})
	f("{mode: libmemcached, distribution: ketama, sort_hosts: true}", topology.Foreign{Mode: topology.ModeLibmemcached, Distribution: "ketama", Hash: "one_at_a_time", SortHosts: true})
	f("{mode: envoy-ring}", topology.Foreign{Mode: topology.ModeEnvoyRing, Hash: "xxh64", MinRingSize: 1024, MaxRingSize: 1 << 23})
	f("{mode: envoy-ring, hash: murmur_hash_2, min_ring_size: 12, max_ring_size: 100}", topology.Foreign{Mode: topology.ModeEnvoyRing, Hash: "murmur2", MinRingSize: 12, MaxRingSize: 100})
	f("{mode: memcached-fast, ketama_points: 150}", topology.Foreign{Mode: topology.ModeMemcachedFast, Points: 150})
	f("{mode: npm-hashring, compatibility: hash_ring, default_port: 11211}", topology.Foreign{Mode: topology.ModeNpmHashring, Distribution: "hash_ring", Hash: "md5", DefaultPort: 11211})
	f("{mode: caddy, distribution: '2.10'}", topology.Foreign{Mode: topology.ModeCaddy, Distribution: "2.10"})
	f("{mode: buraksezer, partitions: 7, load: 1.5}", topology.Foreign{Mode: topology.ModeBuraksezer, Points: 20, Partitions: 7, Load: 1.5})
	f("{mode: redis-slots, threshold: 5}", topology.Foreign{Mode: topology.ModeRedisSlots, Threshold: 5})
}

// Every mode has a file without parameters that is accepted.
func TestCompatEveryMode(t *testing.T) {
	for _, m := range topology.Modes() {
		d, err := Parse("c.yaml", fmt.Appendf(nil, "cluster: c\ncompat: {mode: %s}\nnodes: [{id: a, addr: '10.0.0.1:1'}, {id: b, addr: '10.0.0.2:1'}]\n", m))
		if err != nil {
			t.Errorf("%s: %v", m, err)
			continue
		}
		if again, err := Parse("again.yaml", Format(d)); err != nil || !cmp.Equal(d, again) {
			t.Errorf("%s: %v (-want +got)\n%s", m, err, cmp.Diff(d, again))
		}
		if w := d.Nodes[0].Weight; w != d.Spec.Compat.DefaultWeight() {
			t.Errorf("%s: absent weight is %d", m, w)
		}
	}
}

// A label may be a plain number, as HAProxy's server ids are: these digits are one
// text to every reader. Others are not.
func TestCompatNumberAsLabel(t *testing.T) {
	d, err := Parse("c.yaml", []byte("cluster: c\ncompat: {mode: haproxy}\nnodes: [{id: a, label: 30}, {id: b, label: 7}]\n"))
	if err != nil || d.Nodes[0].Label != "30" || d.Nodes[1].Label != "7" {
		t.Errorf("%+v, %v", d.Nodes, err)
	}
	for _, label := range []string{"030", "0x1e", "3e1", "-3", "30.0", "true", "1_0", "99999999999999999999"} {
		_, err := Parse("c.yaml", []byte("cluster: c\ncompat: {mode: haproxy}\nnodes: [{id: a, label: "+label+"}]\n"))
		if err == nil {
			t.Errorf("label %s is taken", label)
		}
	}
}

func TestCompatRefused(t *testing.T) {
	f := func(file, want string) {
		t.Helper()
		_, err := Parse("c.yaml", []byte("cluster: c\n"+file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	two := "nodes: [{id: a, addr: 'x:1'}, {id: b, addr: 'y:1'}]\n"
	f("compat: {}\n"+two, "compat.mode: missing; name the foreign system: envoy-maglev")
	f("compat: {mode: ketama, hash_tag: '{}'}\n"+two, "c.yaml:2:24: compat.hash_tag: mode ketama has no such parameter; it has hash, sort_hosts")
	f("compat: {mode: nginx, points: 3}\n"+two, "mode nginx has no such parameter; it has none")
	f("compat: {mode: twemproxy, distribution: random}\n"+two, `compat.distribution: unknown "random"; want one of ketama, modula`)
	f("compat: {mode: haproxy, function: md5}\n"+two, `compat.function: unknown "md5"; want one of sdbm, djb2, wt6, crc32`)
	f("compat: {mode: envoy-maglev, table_size: 65536}\n"+two, "not prime")
	f("compat: {mode: ketama}\nkey_hash: xxh64\n"+two, "key_hash: stands beside compat")
	f("compat: {mode: ketama}\nring: {vnodes: 3}\n"+two, "ring: parameters of ring, but compat takes the place of an algorithm")
	f("algorithm: compat\n"+two, `unknown mode ""`)
	f("algorithm: ring\nnodes: [{id: a, position: 1}]\n", `unknown field "position"`)
	f("compat: {mode: ketama}\nnodes: [{id: a, addr: 'x:1'}, {id: b, addr: 'x:1'}]\n", `nodes[1].label: node "b" hashes as "x:1", as nodes[0] does`)
	f("compat: {mode: ketama}\nnodes: [{id: a, position: 2}, {id: b}]\n", `nodes[1].position: node "b": position 2 is that of nodes[0] already`)
	f("compat: {mode: haproxy}\nnodes: [{id: a, label: web1}]\n", `label "web1" is no HAProxy server id`)
	f("compat: {mode: haproxy}\nnodes: [{id: a, weight: 300}]\n", "more than HAProxy's 256")
	f("compat: {mode: libketama}\nnodes: [{id: a, addr: 'a-host-name.example:11211'}]\n", "longer than the 21 bytes")
	f("compat: {mode: ketama}\nnodes: [{id: a, slots: '0-1'}]\n", "only nodes of mode redis-slots have slots")
	f("compat: {mode: redis-slots}\nnodes: [{id: a, slots: '0-16383'}, {id: b, slots: '7'}]\n", `slot 7 belongs to node "a" already`)
	f("compat: {mode: redis-slots}\nnodes: [{id: a, slots: '0-16384'}]\n", "is no range of slots")
}
