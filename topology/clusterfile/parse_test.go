package clusterfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/topology"
)

// head is the part of a file before what a case is about.
const head = "cluster: cache\nalgorithm: ring\n"

const nodes = "nodes:\n  - {id: a, addr: \"10.0.0.1:11211\"}\n"

func TestParse(t *testing.T) {
	f := func(text string, want topology.Declared) {
		t.Helper()
		got, err := Parse("c.yaml", []byte(text))
		if err != nil {
			t.Errorf("%v in:\n%s", err, text)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	full := topology.Declared{Cluster: "cache",
		Spec: topology.Spec{Algorithm: topology.Ring, VNodes: 100, KeyHash: topology.CRC16, HashTag: "<>", Replicas: 2, BoundedLoad: 1.25, ZoneAware: true},
		Nodes: []topology.Node{
			{ID: "cache-a", Addr: "10.0.0.1:11211", Weight: 3, Zone: "z1"},
			{ID: "cache-b", Label: "old", State: topology.StateDraining},
		}}
	f(`
# a comment
cluster: cache
algorithm: ring   # another
ring: {vnodes: 100}
key_hash: crc16
hash_tag: "<>"
replicas: 2
bounded_load: 1.25
zone_aware: true
nodes:
  - {id: cache-a, addr: "10.0.0.1:11211", weight: 3, zone: z1}
  - id: cache-b
    label: old
    weight: 0
    state: draining
`, full)
	f(`{"cluster": "cache", "algorithm": "ring", "ring": {"vnodes": 100}, "key_hash": "crc16", "hash_tag": "<>", "replicas": 2,
  "bounded_load": 1.25, "zone_aware": true, "nodes": [
    {"id": "cache-a", "addr": "10.0.0.1:11211", "weight": 3, "zone": "z1", "state": "active"},
    {"id": "cache-b", "label": "old", "weight": 0, "state": "draining"}]}`, full)

	one := []topology.Node{{ID: "a", Addr: "10.0.0.1:11211", Weight: 1}}
	with := func(s topology.Spec) topology.Declared {
		return topology.Declared{Cluster: "cache", Spec: s, Nodes: one}
	}
	xx := func(s topology.Spec) topology.Spec {
		s.KeyHash, s.Replicas = topology.XXH64, 1
		return s
	}
	f(head+nodes, with(xx(topology.Spec{Algorithm: topology.Ring, VNodes: 160})))
	f("cluster: cache\nalgorithm: jump\n"+nodes, with(xx(topology.Spec{Algorithm: topology.Jump, JumpUnit: 1, JumpVariant: topology.JumpClassic})))
	f("cluster: cache\nalgorithm: jump\njump: {variant: jumpback, unit: 16}\n"+nodes, with(xx(topology.Spec{Algorithm: topology.Jump, JumpUnit: 16, JumpVariant: topology.JumpBack})))
	f("cluster: cache\nalgorithm: rendezvous\nrendezvous: {table: 0}\n"+nodes, with(xx(topology.Spec{Algorithm: topology.Rendezvous})))
	f("cluster: cache\nalgorithm: rendezvous\nrendezvous: {table: 4096}\n"+nodes, with(xx(topology.Spec{Algorithm: topology.Rendezvous, RendezvousTable: 4096})))
	f("cluster: cache\nalgorithm: maglev\nmaglev:\n  table_size: 251\n"+nodes, with(xx(topology.Spec{Algorithm: topology.Maglev, TableSize: 251})))
	f("cluster: cache\nalgorithm: slots\n"+nodes, with(xx(topology.Spec{Algorithm: topology.Slots, SlotCount: 16384})))
	redis := topology.Spec{Algorithm: topology.Slots, SlotCount: 16384, KeyHash: topology.CRC16, HashTag: "{}", Replicas: 1}
	f("cluster: cache\nalgorithm: slots\nkey_hash: crc16\n"+nodes, with(redis))
	redis.HashTag = ""
	f("cluster: cache\nalgorithm: slots\nkey_hash: crc16\nhash_tag: \"\"\n"+nodes, with(redis))
	f("---\n"+head+"bounded_load: 2\n"+nodes, with(xx(topology.Spec{Algorithm: topology.Ring, VNodes: 160, BoundedLoad: 2})))
	f(head+"bounded_load: 0\n"+nodes, with(xx(topology.Spec{Algorithm: topology.Ring, VNodes: 160})))
	f("cluster: cache\r\nalgorithm: ring\r\nnodes:\r\n  - {id: a, addr: \"10.0.0.1:11211\"}\r\n", with(xx(topology.Spec{Algorithm: topology.Ring, VNodes: 160})))
}

// TestWeights: field case weight-04. 0 owns nothing and is not "unset".
func TestWeights(t *testing.T) {
	d, err := Parse("", []byte(head+"nodes: [{id: a, weight: 1}, {id: b, weight: 0}, {id: c}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := []topology.Node{{ID: "a", Weight: 1}, {ID: "b"}, {ID: "c", Weight: 1}}
	if diff := cmp.Diff(want, d.Nodes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefused(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		d, err := Parse("c.yaml", []byte(text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("got %+v, %v, want %q", d, err, want)
			return
		}
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %s\nwant %s", err, want)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
	}
	// The file as a whole.
	f("", "c.yaml: empty; want at least cluster, algorithm and nodes")
	f("# nothing\n", "c.yaml: empty; ")
	f("hello", "c.yaml:1:1: want a map of cluster, algorithm, ")
	f("- a\n- b\n", "c.yaml:1:1: want a map of cluster, ")
	f("\xff\xfe", "c.yaml: not UTF-8 text; is this a cluster file?")
	f("shardd-topology\n\x01\x00", "c.yaml: contains a zero byte; is this a cluster file?")
	f("cluster: [a\n", "c.yaml:1:")
	f("cluster: \"a\n", "c.yaml:1:")
	f(head+nodes+"---\n"+head+nodes, "c.yaml:5:1: more than one YAML document; put each cluster into its own file")
	f("cluster: &x cache\nalgorithm: ring\n"+nodes, "c.yaml:1:10: anchors, aliases, ")
	f("cluster: *x\n", "c.yaml:1:10: anchors, aliases, ")
	f("cluster: !!str cache\n", "c.yaml:1:10: anchors, aliases, ")
	f("cluster: "+strings.Repeat("[", 40), "c.yaml:1:26: nested too deeply")
	f(strings.Repeat("- ", 40)+"a", "c.yaml:1:33: nested too deeply")
	f("a: |\n  b\n"+strings.Repeat(" \n", 400)+"  c\n", "c.yaml:259:1: more than 256 blank lines one after another; remove them")
	f(strings.Repeat("a: b\n", 100), "c.yaml:65:1: more than 64 fields in one map; a cluster file has at most 14")
	f(strings.Repeat("#", MaxSize+1), "c.yaml: 16777217 bytes are more than 16777216")

	// Fields.
	f(head+"vnodes: 3\n"+nodes, `c.yaml:3:1: unknown field "vnodes"; did you mean "nodes"?`)
	f(head+"ring: {vnode: 3}\n"+nodes, `c.yaml:3:8: ring: unknown field "vnode"; did you mean "vnodes"?`)
	f(head+"owner: me\n"+nodes, `c.yaml:3:1: unknown field "owner"; known are cluster, algorithm, ring, `)
	f(head+"nodes:\n  - {id: a, wieght: 2}\n", `c.yaml:4:13: nodes[0]: unknown field "wieght"; did you mean "weight"?`)
	f(head+"algorithm: jump\n"+nodes, "c.yaml:3:1: algorithm: duplicate field; it stands on line 2 already")
	f(head+"nodes:\n  - {id: a, id: b}\n", "c.yaml:4:13: nodes[0].id: duplicate field; it stands on line 4 already")
	f(head+"ring: {vnodes: 1, vnodes: 2}\n"+nodes, "c.yaml:3:19: ring.vnodes: duplicate field")
	f("algorithm: ring\n"+nodes, "c.yaml:1:1: cluster: missing; ")
	f("cluster: c\n"+nodes, "c.yaml:1:1: algorithm: missing; ")
	f(head, "c.yaml:1:1: nodes: missing; ")
	f(head+"nodes:\n", "c.yaml:3:")
	f(head+"nodes: []\n", "c.yaml:3:8: nodes: empty; a cluster needs at least one node")
	f(head+"nodes: {id: a}\n", "c.yaml:3:8: nodes: want a list of nodes, not a map")
	f(head+"nodes: [a, b]\n", `c.yaml:3:9: nodes[0]: want a map of id, addr, weight, zone, label, state, not the text "a"`)
	f(head+"compat: {mode: twemproxy}\n"+nodes, "c.yaml:2:1: algorithm: stands beside compat, whose mode decides it")

	// Names.
	f("cluster: a/b\nalgorithm: ring\n"+nodes, `c.yaml:1:10: cluster: cluster name "a/b" has '/' at byte 1`)
	f("cluster: \"\"\nalgorithm: ring\n"+nodes, "c.yaml:1:10: cluster: cluster name is empty")
	f("cluster: 12\nalgorithm: ring\n"+nodes, "c.yaml:1:10: cluster: want text, not the number 12; put it in quotes")
	f(head+"nodes: [{id: \"\"}]\n", "c.yaml:3:14: nodes[0].id: node id is empty; give every node a stable name")
	f(head+"nodes: [{addr: x}]\n", "c.yaml:3:9: nodes[0].id: node id is empty; ")
	f(head+"nodes: [{id: null}]\n", `c.yaml:3:10: nodes[0].id: want text, not nothing; leave the field out or write ""`)
	f(head+"nodes: [{id: a/b}]\n", `c.yaml:3:14: nodes[0].id: node id "a/b" has '/' at byte 1`)
	f(head+"nodes: [{id: 7}]\n", "c.yaml:3:14: nodes[0].id: want text, not the number 7; put it in quotes")
	f(head+"nodes: [{id: true}]\n", "c.yaml:3:14: nodes[0].id: want text, not the truth value true; put it in quotes")
	f(head+"nodes:\n  - {id: a}\n  - {id: b}\n  - {id: a}\n", `c.yaml:6:10: nodes[2].id: duplicate node id "a"; nodes[0] has it already`)
	f(head+"nodes: [{id: a, zone: [z]}]\n", "c.yaml:3:23: nodes[0].zone: want text, not a list")
	f(head+"nodes: [{id: a, state: gone}]\n", `c.yaml:3:24: nodes[0].state: unknown state "gone"; want active, joining, `)

	// Weights.
	weight := func(w, want string) {
		t.Helper()
		f(head+"nodes:\n  - id: a\n    weight: "+w+"\n", "c.yaml:5:13: nodes[0].weight: "+want)
	}
	weight("-1", "-1 is negative; want 0 to 1000000")
	weight("1.5", "1.5 is not a whole number in plain decimal digits; want 0 to 1000000")
	weight("1.0", "1.0 is not a whole number")
	weight("1e3", `want a whole number from 0 to 1000000, not the text "1e3"`)
	weight("1000001", "1000001 is too large; want 0 to 1000000")
	weight("99999999999999999999999", "99999999999999999999999 is too large; want 0 to 1000000")
	weight("010", "010 has leading zeros; write 10")
	weight("0x10", "0x10 is not a whole number")
	weight("1_000", "1_000 is not a whole number")
	weight("\"2\"", `want a whole number from 0 to 1000000, not the text "2"`)
	weight(".inf", "want a whole number from 0 to 1000000, not the number .inf")
	weight("[1]", "want a whole number from 0 to 1000000, not a list")
	weight("true", "want a whole number from 0 to 1000000, not the truth value true")
	f(head+"nodes: [{id: a, weight: 0}, {id: b, weight: 0}]\n", "c.yaml:3:8: nodes: every node has weight 0, so none would own a key")
	f(head+"nodes: [{id: a, weight: 26215}]\n", "c.yaml:3:8: nodes: 4194400 ring points (160 per unit of weight x total weight 26215) are more than 4194304; lower ring.vnodes")

	// The spec.
	f("cluster: c\nalgorithm: rnig\n"+nodes, `c.yaml:2:12: algorithm: unknown algorithm "rnig"; want one of ring, jump, rendezvous, maglev, slots`)
	f("cluster: c\nalgorithm: \"\"\n"+nodes, "c.yaml:2:12: algorithm: empty; ")
	f("cluster: c\nalgorithm:\n"+nodes, "c.yaml:2:1: algorithm: want text, not nothing")
	f("cluster: c\nalgorithm: maglev\nring: {vnodes: 3}\n"+nodes, "c.yaml:3:1: ring: parameters of ring, but the algorithm is maglev; remove them or set algorithm: ring")
	f("cluster: c\nring: {vnodes: 3}\nalgorithm: maglev\n"+nodes, "c.yaml:2:1: ring: parameters of ring, but the algorithm is maglev")
	f(head+"ring: 160\n"+nodes, "c.yaml:3:7: ring: want a map of vnodes, not the number 160")
	f(head+"ring: {vnodes: 0}\n"+nodes, "c.yaml:3:16: ring.vnodes: 0 is too small; want 1 to 4194304, or leave it out for the default")
	f("cluster: c\nalgorithm: jump\njump: {variant: flip}\n"+nodes, `c.yaml:3:17: jump.variant: unknown variant "flip"; want classic or jumpback`)
	f("cluster: c\nalgorithm: jump\njump: {unit: 257}\n"+nodes, "c.yaml:3:14: jump.unit: 257 is too large; want 1 to 256")
	f("cluster: c\nalgorithm: rendezvous\nrendezvous: {table: 100}\n"+nodes, "c.yaml:3:21: rendezvous.table: table of 100 slots: want 0 (exact) or 256 to 1048576")
	f("cluster: c\nalgorithm: slots\nslots: {count: 65537}\n"+nodes, "c.yaml:3:16: slots.count: 65537 is too large; want 1 to 65536")
	f(head+"key_hash: md5\n"+nodes, `c.yaml:3:11: key_hash: unknown key hash "md5"; want xxh64 or crc16`)
	f(head+"hash_tag: \"{\"\n"+nodes, `c.yaml:3:11: hash_tag: hash tag "{": want two printable ASCII characters, such as {}, or nothing`)
	f(head+"hash_tag: {}\n"+nodes, "c.yaml:3:11: hash_tag: want text, not a map")
	f(head+"replicas: 0\n"+nodes, "c.yaml:3:11: replicas: 0 is too small; want 1 to 16")
	f(head+"replicas: 17\n"+nodes, "c.yaml:3:11: replicas: 17 is too large; want 1 to 16")
	f(head+"bounded_load: 0.5\n"+nodes, "c.yaml:3:15: bounded_load: factor 0.5: want 0 (off) or 1 to 1000")
	f(head+"bounded_load: -1.25\n"+nodes, "c.yaml:3:15: bounded_load: factor -1.25: want 0 (off)")
	f(head+"bounded_load: .nan\n"+nodes, "c.yaml:3:15: bounded_load: want a number such as 1.25, not the number .nan")
	f(head+"bounded_load: \"1.25\"\n"+nodes, `c.yaml:3:15: bounded_load: want a number such as 1.25, not the text "1.25"`)
	f(head+"zone_aware: yes\n"+nodes, `c.yaml:3:13: zone_aware: want true or false, not the text "yes"`)
	f(head+"zone_aware: 1\n"+nodes, "c.yaml:3:13: zone_aware: want true or false, not the number 1")
	f(`{"cluster":"c","algorithm":"ring","nodes":[{"id":"a","weight":-2}]}`, "c.yaml:1:63: nodes[0].weight: -2 is negative")
}

// TestTableSize: field case hash-07, at the file.
func TestTableSize(t *testing.T) {
	f := func(size, want string) {
		t.Helper()
		_, err := Parse("c.yaml", []byte("cluster: c\nalgorithm: maglev\nmaglev: {table_size: "+size+"}\n"+nodes))
		if want = "c.yaml:3:22: maglev.table_size: " + want; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got  %v\nwant %s", size, err, want)
		}
	}
	f("1000", "table size 1000 is not prime (a permutation would not reach every entry); the next prime is 1009")
	f("1024", "table size 1024 is not prime (a permutation would not reach every entry); the next prime is 1031")
	f("65536", "table size 65536 is not prime (a permutation would not reach every entry); the next prime is 65537")
	f("0", "0 is too small; want 3 to 4194301")
	f("1", "1 is too small")
	f("2", "2 is too small")
	f("-1", "-1 is negative")
	f("4294967291", "4294967291 is too large; want 3 to 4194301")
	var list strings.Builder
	for i := range 20 {
		fmt.Fprintf(&list, "  - {id: n%d}\n", i)
	}
	_, err := Parse("c.yaml", []byte("cluster: c\nalgorithm: maglev\nmaglev: {table_size: 13}\nnodes:\n"+list.String()))
	if want := "c.yaml:3:22: maglev.table_size: 20 nodes are more than the table's 13 entries"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestUnknownIsMarked(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		if _, err := Parse("", []byte(text)); errors.Is(err, topology.ErrUnknown) != want {
			t.Errorf("%v: ErrUnknown is %t", err, !want)
		}
	}
	f("cluster: c\nalgorithm: anchor\n"+nodes, true)
	f(head+"frozen: true\n"+nodes, true)
	f("cluster: c\ncompat: {mode: mcrouter}\n"+nodes, true)
	f("cluster: c\ncompat: {mode: twemproxy, hash: sha3}\n"+nodes, true)
	f(head+"replicas: 99\n"+nodes, false)
	f("x", false)
}

func TestNamelessFile(t *testing.T) {
	if _, err := Parse("", nil); err == nil || !strings.HasPrefix(err.Error(), "cluster file: empty") {
		t.Errorf("got %v", err)
	}
}

func TestLocate(t *testing.T) {
	b := []byte(head + "nodes:\n  - {id: a}\n  - {id: b, weight: 3}\n")
	err := error(&topology.FieldError{Path: "nodes[1].weight", Err: errors.New("too little")})
	if got := Locate("c.yaml", b, fmt.Errorf("placement: %w", err)); got.Error() != "c.yaml:5:21: nodes[1].weight: too little" {
		t.Errorf("got %v", got)
	}
	plain := errors.New("plain")
	for _, got := range []error{Locate("c.yaml", b, plain), Locate("c.yaml", nil, plain), Locate("c.yaml", b, nil)} {
		if got != nil && !errors.Is(got, plain) {
			t.Errorf("got %v", got)
		}
	}
}

// TestManyNodes: a file of 10,000 nodes is read in one go.
func TestManyNodes(t *testing.T) {
	d := topology.Declared{Cluster: "big", Spec: topology.Spec{Algorithm: topology.Rendezvous}.Normal()}
	for i := range 10_000 {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("cache-%05d", i), Addr: fmt.Sprintf("10.0.%d.%d:11211", i/250, i%250), Weight: uint32(i % 9), Zone: "z1"})
	}
	got, err := Parse("", Format(d))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestByteOrderMark: an editor's mark before the text is no part of it, and
// does not shift the place of a fault.
func TestByteOrderMark(t *testing.T) {
	if d, err := Parse("c.yaml", []byte("\uFEFF"+head+nodes)); err != nil || d.Cluster != "cache" {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := Parse("c.yaml", []byte("\uFEFFkluster: cache\n")); err == nil || !strings.HasPrefix(err.Error(), "c.yaml:1:1: ") {
		t.Errorf("%v", err)
	}
	if _, err := Parse("c.yaml", []byte("\uFEFF")); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("%v", err)
	}
}
