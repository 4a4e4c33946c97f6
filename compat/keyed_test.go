package compat

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/topology"
)

// go-zero's nodes "node-1" and "node-11" have points in common; which of them a
// key there goes to another hash of the key says.
func TestGoZeroSharedPoints(t *testing.T) {
	var v struct {
		picks
		Nodes []string
	}
	readJSON(t, "go_zero_shared", &v)
	r := &replay{T: t}
	for i := range v.Picks {
		r.text = append(r.text, fmt.Sprintf("key-%d", i))
	}
	f := topology.Foreign{Mode: topology.ModeGoZero}
	nodes := list(v.Nodes, slices.Repeat([]uint32{100}, len(v.Nodes)))
	if m := r.mapping("shared", f, nodes); m.Keyed == nil || m.Ring != nil {
		t.Fatal("shared points on a plain ring")
	}
	r.check("shared", f, nodes, v.picks)
	r.done(500)
	if m := r.mapping("apart", f, nodes[:2]); m.Ring == nil {
		t.Error("without shared points there is no ring")
	}
}

// Caddy since 2.10 hashes the upstream before the key.
func TestCaddyNameFirst(t *testing.T) {
	names := []string{"127.0.0.1:7601", "127.0.0.1:7602", "127.0.0.1:7603"}
	r := newReplay(t)
	m := r.mapping("2.10", topology.Foreign{Mode: topology.ModeCaddy, Distribution: "2.10"}, list(names, nil))
	for _, key := range slices.Concat(r.text, r.bin) {
		best := 0
		for i, n := range names {
			if xxhash.Sum64String(n+key) > xxhash.Sum64String(names[best]+key) {
				best = i
			}
		}
		if got := m.LocateKey(key); got != best {
			t.Errorf("key %q is on %d, want %d", key, got, best)
		}
	}
}

// A node that is down leaves its keys to the tries after the first; the others
// keep theirs, and the whole order names every node that takes part once.
func TestTriesPassOverDown(t *testing.T) {
	for _, mode := range []topology.Mode{topology.ModeNginxHash, topology.ModeNginxIPHash} {
		nodes := list([]string{"a:1", "b:1", "c:1", "d:1"}, []uint32{1, 2, 3, 1})
		r := newReplay(t)
		up := r.mapping("up", topology.Foreign{Mode: mode}, nodes)
		nodes[2].State = topology.StateDown
		down := r.mapping("down", topology.Foreign{Mode: mode}, nodes)
		for i := range 300 {
			key := fmt.Sprintf("%d.%d.7.1", i%251, i/3)
			was, is := up.LocateKey(key), down.LocateKey(key)
			if is == 2 || was != 2 && is != was {
				t.Errorf("%s: key %q went from %d to %d", mode, key, was, is)
			}
			if order := down.Keyed.AppendKey(nil, key, 9); len(order) != 3 || order[0] != is || slices.Contains(order, 2) {
				t.Errorf("%s: order of key %q is %v, owner %d", mode, key, order, is)
			}
		}
	}
}
