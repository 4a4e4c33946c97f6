package compat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// drawPoints draws points of 32 bits, sorted, some equal and some side by side.
func drawPoints(t *rapid.T) []ring.Point {
	place := rapid.OneOf(rapid.Uint32Range(0, 12), rapid.Uint32(), rapid.Uint32Range(1<<32-6, 1<<32-1))
	var points []ring.Point
	for i, p := range rapid.SliceOfN(place, 1, 20).Draw(t, "places") {
		points = append(points, ring.Point{Place: high(p), Owner: uint16(i)})
	}
	return sortPoints(points)
}

// around are the hashes at which a rule can go wrong: on points, beside them and
// in the middle of gaps.
func around(points []ring.Point) []uint32 {
	var hs []uint32
	for i, p := range points {
		next := uint32(points[(i+1)%len(points)].Place >> 32)
		at := uint32(p.Place >> 32)
		middle := at + (next-at)/2
		hs = append(hs, at-1, at, at+1, middle-1, middle, middle+1)
	}
	return hs
}

func locateOn(t *rapid.T, points []ring.Point, h uint32) int {
	r, err := ring.FromPoints(20, points)
	if err != nil {
		t.Fatal(err)
	}
	return r.Locate(high(h))
}

// The rules upper and nearest, said in terms of lower, are what they say.
func TestLookupRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := drawPoints(t)
		at := func(i int) uint32 { return uint32(points[i].Place >> 32) }
		down, mid := oneLower(slices.Clone(points), false), halfway(slices.Clone(points))
		for _, h := range around(points) {
			above := 0
			for above < len(points) && at(above) <= h {
				above++
			}
			if got, want := locateOn(t, down, h), points[above%len(points)].Owner; got != int(want) {
				t.Fatalf("upper(%d) is %d, want %d of %v", h, got, want, points)
			}
			if at(0) == at(len(points)-1) {
				continue // all at one place
			}
			first := 0
			for first < len(points) && at(first) < h {
				first++
			}
			next, before := first%len(points), (first-1+len(points))%len(points)
			want := points[next].Owner
			if h-at(before) <= at(next)-h {
				want = points[before].Owner
			}
			if got := locateOn(t, mid, h); got != int(want) {
				t.Fatalf("nearest(%d) is %d, want %d of %v", h, got, want, points)
			}
		}
	})
}

// Of points that two peers of groupcache have in common, as "a" and "1a" do, the
// later peer of the list owns them; nginx keeps the first of equal points.
func TestSharedPoints(t *testing.T) {
	nodes := list([]string{"a", "1a", "21a", "b"}, nil)
	owner, places := map[uint32]int{}, []uint32{}
	for i, n := range nodes {
		for j := range 50 {
			h := keyhash.CRC32.Narrow(strconv.Itoa(j) + n.Addr)
			owner[h] = i
			places = append(places, h)
		}
	}
	slices.Sort(places)
	if len(slices.Compact(slices.Clone(places))) == len(places) {
		t.Fatal("no shared points")
	}
	m, err := New(topology.Foreign{Mode: topology.ModeGroupcache}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		if got := m.Locate(high(p)); got != owner[p] {
			t.Errorf("point %d belongs to %d, want %d", p, got, owner[p])
		}
	}
	points := []ring.Point{{Place: 1, Owner: 1}, {Place: 1, Owner: 2}, {Place: 3, Owner: 0}}
	if got := unite(slices.Clone(points), onlyFirst); len(got) != 2 || got[0].Owner != 1 {
		t.Errorf("first of equals: %v", got)
	}
	if got := unite(slices.Clone(points), inOrder); len(got) != 3 {
		t.Errorf("all: %v", got)
	}
}

// HAProxy's ids: those given, else the place in the list, else the next free one.
func TestServerIDs(t *testing.T) {
	f := func(labels []string, positions, want []uint32) {
		t.Helper()
		servers := make([]server, len(labels))
		for i := range servers {
			servers[i].Label, servers[i].Position = labels[i], positions[i]
		}
		numberServers(servers)
		for i, s := range servers {
			if s.id != want[i] {
				t.Errorf("labels %q at %v: server %d has id %d, want %d", labels, positions, i, s.id, want[i])
			}
		}
	}
	f([]string{"", "", ""}, []uint32{1, 2, 3}, []uint32{1, 2, 3})
	f([]string{"30", "", "10"}, []uint32{1, 2, 3}, []uint32{30, 2, 10})
	f([]string{"2", "", ""}, []uint32{1, 2, 3}, []uint32{2, 3, 4})
	f([]string{"", "", "2"}, []uint32{1, 2, 3}, []uint32{1, 3, 2})
	f([]string{"", "1", ""}, []uint32{1, 2, 3}, []uint32{2, 1, 4}) // these as HAProxy 2.6.12 shows them
	f([]string{"", "3", "", ""}, []uint32{1, 2, 3, 4}, []uint32{1, 3, 4, 5})
	f([]string{"", "5", "", "2", "", ""}, []uint32{1, 2, 3, 4, 5, 6}, []uint32{1, 5, 3, 2, 6, 7})
	f([]string{"", ""}, []uint32{4, 9}, []uint32{4, 9}) // after others went
}

// Cilium looks at weights only where their mean, in integers, is above 1.
func TestCiliumWeights(t *testing.T) {
	table := func(weights ...uint32) string {
		m, err := New(topology.Foreign{Mode: topology.ModeCilium, TableSize: 251}, list([]string{"a:1", "b:1", "c:1"}, weights))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(m.Modulo.entries)
	}
	if table(1, 1, 2) != table(1, 1, 1) {
		t.Error("weights of mean 1.33 count")
	}
	if table(1, 1, 4) == table(1, 1, 1) {
		t.Error("weights of mean 2 do not count")
	}
}

// A new master among many is no farther from its share than the threshold, but
// it has nothing at all.
func TestRedisEmptyMaster(t *testing.T) {
	weights := slices.Repeat([]float64{1}, 101)
	next, moves := RedisRebalance(RedisCreate(100), weights, RedisOptions{Threshold: 2, UseEmpty: true})
	count := 0
	for _, o := range next {
		if o == 100 {
			count++
		}
	}
	if count < 162 || len(moves) == 0 {
		t.Errorf("the new master has %d slots", count)
	}
	if _, moves := RedisRebalance(RedisCreate(100), weights, RedisOptions{Threshold: 0, UseEmpty: true}); len(moves) != 0 {
		t.Errorf("threshold 0: %d moves", len(moves))
	}
}

// Labels of addresses, port by port.
func TestLabels(t *testing.T) {
	f := func(foreign topology.Foreign, n topology.Node, want string) {
		t.Helper()
		if got := label(topology.Spec{Compat: foreign}.Normal().Compat, n); got != want {
			t.Errorf("%s %+v: label %q, want %q", foreign.Mode, n, got, want)
		}
	}
	ketama := topology.Foreign{Mode: topology.ModeKetama}
	f(ketama, topology.Node{ID: "a", Addr: "10.0.0.1:11211"}, "10.0.0.1")
	f(ketama, topology.Node{ID: "a", Addr: "10.0.0.1:11212"}, "10.0.0.1:11212")
	f(ketama, topology.Node{ID: "a", Addr: "cache"}, "cache")
	f(ketama, topology.Node{ID: "a", Addr: "[::1]:11211"}, "::1")
	f(ketama, topology.Node{ID: "a", Addr: "[::1]:7000"}, "::1:7000")
	f(ketama, topology.Node{ID: "a", Addr: "::1"}, "::1")
	f(ketama, topology.Node{ID: "a", Addr: "x:1", Label: "name:11211"}, "name:11211")
	f(ketama, topology.Node{ID: "a"}, "a")
	f(topology.Foreign{Mode: topology.ModeTwemproxy}, topology.Node{ID: "a", Addr: "/tmp/mc.sock"}, "/tmp/mc.sock")
	f(topology.Foreign{Mode: topology.ModeLibmemcached, Distribution: "ketama_spy"}, topology.Node{ID: "a", Addr: "h:11211"}, "/h:11211")
	f(topology.Foreign{Mode: topology.ModeLibmemcached, Distribution: "ketama_spy"}, topology.Node{ID: "a", Addr: "h"}, "/h:11211")
	f(topology.Foreign{Mode: topology.ModeSpymemcached}, topology.Node{ID: "a", Addr: "h:11211"}, "h:11211")
	f(topology.Foreign{Mode: topology.ModeNpmHashring, DefaultPort: 7000}, topology.Node{ID: "a", Addr: "h:7000"}, "h")
	f(topology.Foreign{Mode: topology.ModeGoRedisRing}, topology.Node{ID: "shard1", Addr: "h:7000"}, "shard1")
	for text, want := range map[string][2]string{"unix:/a:80": {"/a:80", ""}, "h:80": {"h", "80"}, "h": {"h", ""}, "[::1]:80": {"[::1]", "80"}} {
		if host, port := splitNginx(text); host != want[0] || port != want[1] {
			t.Errorf("nginx %q: %q and %q", text, host, port)
		}
	}
}

// What the foreign program cannot work with, or this module has no room for, is
// refused with a reason.
func TestRefused(t *testing.T) {
	f := func(foreign topology.Foreign, weights []uint32, want error) {
		t.Helper()
		addrs := make([]string, len(weights))
		for i := range addrs {
			addrs[i] = fmt.Sprintf("h%d:1", i)
		}
		if _, err := New(foreign, list(addrs, weights)); err == nil || !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", foreign.Mode, err, want)
		}
	}
	f(topology.Foreign{Mode: topology.ModeNginx}, []uint32{1_000_000}, ErrSize)
	f(topology.Foreign{Mode: topology.ModeTwemproxy, Distribution: "modula"}, slices.Repeat([]uint32{1_000_000}, 5), ErrSize)
	f(topology.Foreign{Mode: topology.ModeEnvoyMaglev, TableSize: 3}, []uint32{1, 1, 1, 1}, ErrNodes)
	f(topology.Foreign{Mode: topology.ModeBuraksezer, Partitions: 3}, []uint32{1, 1, 1, 1}, ErrNodes)
}
