package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/topology"
)

var redisSpec = topology.Spec{Compat: topology.Foreign{Mode: topology.ModeRedisSlots}}

// masters are nodes a, b, ... in the order of the list, with slots where given.
func masters(slots ...string) []topology.Node {
	nodes := make([]topology.Node, len(slots))
	for i, s := range slots {
		nodes[i] = topology.Node{ID: string(rune('a' + i)), Weight: 1, Slots: s}
	}
	return nodes
}

// slotRanges says who holds what: "a 0-5460, b 5461-10922".
func slotRanges(t *Table) string {
	var parts []string
	first := 0
	at := func(s int) string { return t.topo.Node(t.slots.Locate(uint64(s) << 50)).ID }
	for s := 1; s <= topology.RedisSlots; s++ {
		if s == topology.RedisSlots || at(s) != at(first) {
			parts = append(parts, fmt.Sprintf("%s %d-%d", at(first), first, s-1))
			first = s
		}
	}
	return strings.Join(parts, ", ")
}

// The first table is redis-cli's layout of a new cluster, the later ones are what
// its planner makes of the one before.
func TestRedisSlotsFollowThePlanner(t *testing.T) {
	f := func(table *Table, want string) {
		t.Helper()
		if got := slotRanges(table); got != want {
			t.Errorf("slots %s, want %s", got, want)
		}
		if table.digest == (topology.Digest{}) || table.topo.Object(topology.KindSlots) == nil {
			t.Error("no table in the topology")
		}
	}
	three := first(t, redisSpec, masters("", "", ""))
	f(three, "a 0-5460, b 5461-10922, c 10923-16383")
	four := after(t, three, redisSpec, masters("", "", "", ""))
	f(four, "d 0-1364, a 1365-5460, d 5461-6826, b 6827-10922, d 10923-12287, c 12288-16383")
	if r := movement(t, three, four); r.Method != MethodTable || r.Ratio != .25 || r.BetweenUnchanged != 0 {
		t.Errorf("a fourth master: %+v", r.Summary)
	}
	nodes := masters("", "", "", "")
	nodes[1].State = topology.StateDraining
	drained := after(t, four, redisSpec, nodes)
	if got := drained.Shares()[1]; got != 0 {
		t.Errorf("a draining master still has %v", got)
	}
	if r := movement(t, four, drained); r.Ratio != .25 {
		t.Errorf("draining a quarter moves %v", r.Ratio)
	}
	gone := after(t, four, redisSpec, slices.Delete(masters("", "", "", ""), 1, 2))
	if !cmp.Equal(slotRanges(gone), slotRanges(drained)) {
		t.Errorf("removed: %s, drained: %s", slotRanges(gone), slotRanges(drained))
	}
	nodes = masters("", "", "", "")
	nodes[0].Addr = "10.0.0.9:6379"
	if r := movement(t, four, after(t, four, redisSpec, nodes)); r.Ratio != 0 {
		t.Errorf("another address moves %v", r.Ratio)
	}
}

// A layout that the nodes name is taken as it is when it is new, and no longer
// looked at when it is not.
func TestRedisSlotsGiven(t *testing.T) {
	given := masters("0-99 200", "100-199,201-16383")
	table := first(t, redisSpec, given)
	const want = "a 0-99, b 100-199, a 200-200, b 201-16383"
	if got := slotRanges(table); got != want {
		t.Errorf("slots %s, want %s", got, want)
	}
	more := after(t, table, redisSpec, append(given, topology.Node{ID: "c", Weight: 1}))
	if shares := more.Shares(); shares[2] < .33 || shares[1] > .34 {
		t.Errorf("after the third master came: %v", shares)
	}
	back := after(t, more, redisSpec, masters("0-8191", "8192-16383"))
	if got := slotRanges(back); got != "a 0-8191, b 8192-16383" {
		t.Errorf("another layout is not taken: %s", got)
	}
	if same := after(t, more, redisSpec, append(given, topology.Node{ID: "c", Weight: 1})); same.Digest() != more.Digest() {
		t.Error("the layout of long ago comes back")
	}
	var field *topology.FieldError
	_, err := Update(nil, draft(1, redisSpec, masters("0-99", "")))
	if !errors.As(err, &field) || !strings.Contains(err.Error(), "slot 100 belongs to no node") {
		t.Errorf("a layout with holes: %v", err)
	}
	given[0].Weight = 0
	if _, err := Update(nil, draft(1, redisSpec, given)); err == nil || !strings.Contains(err.Error(), `slot 0 belongs to node "a", which owns nothing`) {
		t.Errorf("slots of a node without weight: %v", err)
	}
}

// A node that takes another's place gets its slots, and nothing else moves.
func TestRedisSlotsReplace(t *testing.T) {
	was := first(t, redisSpec, masters("", "", ""))
	nodes := masters("", "", "")
	nodes[1].ID = "x"
	is, err := UpdateWith(was, draft(2, redisSpec, nodes), UpdateOptions{Replace: map[string]string{"b": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := slotRanges(is); got != "a 0-5460, x 5461-10922, c 10923-16383" {
		t.Errorf("slots %s", got)
	}
}

// From a Redis Cluster to slots of this module under crc16, and back, nothing
// moves that the weights do not ask for.
func TestRedisSlotsToNative(t *testing.T) {
	was := first(t, redisSpec, masters("0-5461", "5462-10922", "10923-16383"))
	is := after(t, was, specOf("slots:16384 crc16 {}"), masters("", "", ""))
	if r := movement(t, was, is); r.Ratio > 2./topology.RedisSlots || r.Method != MethodTable {
		t.Errorf("to native slots: %v by %s", r.Ratio, r.Method)
	}
	back := after(t, is, redisSpec, masters("", "", ""))
	if r := movement(t, is, back); r.Ratio != 0 {
		t.Errorf("back: %v", r.Ratio)
	}
	keys := []string{"foo", "{user1000}.following", "a{b}c", ""}
	for _, key := range keys {
		a, errA := was.Owner(key)
		b, errB := back.Owner(key)
		if a != b || errA != nil || errB != nil {
			t.Errorf("key %q: %d (%v), %d (%v)", key, a, errA, b, errB)
		}
	}
}

// Without masters there are no slots; the next masters get a new layout.
func TestRedisSlotsEmpty(t *testing.T) {
	none := first(t, redisSpec, nil)
	if _, err := none.Owner("k"); !errors.Is(err, ErrNoNodes) {
		t.Errorf("without masters: %v", err)
	}
	if got := slotRanges(after(t, none, redisSpec, masters("", ""))); got != "a 0-8191, b 8192-16383" {
		t.Errorf("slots %s", got)
	}
}

// Slots under another key hash say nothing about those of Redis: the first table
// is a new layout.
func TestRedisSlotsFromOtherHash(t *testing.T) {
	was := first(t, specOf("slots:16384"), masters("", "", ""))
	if got := slotRanges(after(t, was, redisSpec, masters("", "", ""))); got != "a 0-5460, b 5461-10922, c 10923-16383" {
		t.Errorf("slots %s", got)
	}
}
