package compat

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/topology"
)

func TestRedisKeySlots(t *testing.T) {
	var v struct {
		Slots []uint16 `json:"text_slots"`
		Edge  []struct {
			Hex  string
			Len  int // of a long key: "p{", so many q less those around them, "}"
			Slot uint16
		}
	}
	readJSON(t, "redis_keyslot", &v)
	hash, err := KeyHash(topology.Foreign{Mode: topology.ModeRedisSlots})
	if err != nil {
		t.Fatal(err)
	}
	check := func(key string, want uint16) {
		t.Helper()
		if got := uint16(hash.Sum(key) >> 50); got != want || keyhash.Slot(key) != want {
			t.Errorf("slot of %q is %d and %d, want %d", key, got, keyhash.Slot(key), want)
		}
	}
	for i, key := range readKeys(t).text {
		check(key, v.Slots[i])
	}
	for _, e := range v.Edge {
		if e.Len > 0 {
			check("p{"+strings.Repeat("q", e.Len-3)+"}", e.Slot)
			continue
		}
		check(unhex(t, e.Hex), e.Slot)
	}
	if len(v.Edge) != 165 {
		t.Errorf("%d edge cases", len(v.Edge))
	}
}

// rebalanceStep is one command on a real cluster: slots before and after.
type rebalanceStep struct {
	Op        string
	Nodes     []int // create
	Weights   map[string]float64
	UseEmpty  bool `json:"use_empty_masters"`
	Threshold float64
	Order     []int               `json:"node_order"`
	Before    map[string][][2]int // ranges, inclusive
	After     map[string][][2]int
	Plan      [][3]int // count, from, to
}

func TestRedisRebalance(t *testing.T) {
	var v struct{ Steps []rebalanceStep }
	readJSON(t, "redis_rebalance", &v)
	for i, s := range v.Steps {
		if s.Op == "create" {
			checkSlots(t, i, RedisCreate(len(s.Nodes)), s.Nodes, s.After)
			continue
		}
		owner := make([]uint16, topology.RedisSlots)
		weights := make([]float64, len(s.Order))
		for n, port := range s.Order {
			weights[n] = 1
			if w, ok := s.Weights[strconv.Itoa(port)]; ok {
				weights[n] = w
			}
			for _, r := range s.Before[strconv.Itoa(port)] {
				for x := r[0]; x <= r[1]; x++ {
					owner[x] = uint16(n)
				}
			}
		}
		next, moves := RedisRebalance(owner, weights, RedisOptions{Threshold: s.Threshold, UseEmpty: s.UseEmpty})
		plan := [][3]int{}
		for _, m := range moves {
			plan = append(plan, [3]int{m.Count, s.Order[m.From], s.Order[m.To]})
		}
		if diff := cmp.Diff(s.Plan, plan); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		checkSlots(t, i, next, s.Order, s.After)
	}
	if len(v.Steps) != 8 {
		t.Errorf("%d steps", len(v.Steps))
	}
}

func checkSlots(t *testing.T, step int, owner []uint16, ports []int, want map[string][][2]int) {
	t.Helper()
	got := map[string][][2]int{}
	for port := range want {
		got[port] = [][2]int{}
	}
	for s, o := range owner {
		port := strconv.Itoa(ports[o])
		list := got[port]
		if n := len(list); n > 0 && list[n-1][1] == s-1 {
			list[n-1][1] = s
			continue
		}
		got[port] = append(list, [2]int{s, s})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("step %d: slots (-want +got):\n%s", step, diff)
	}
}

// Whatever the layout, a plan moves what it says, gives a node of weight 0
// nothing, and leaves the others within a slot of their shares.
func TestRedisRebalanceLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		weights, sum := make([]float64, n), 0.0
		for i := range weights {
			weights[i] = float64(rapid.IntRange(0, 9).Draw(t, fmt.Sprint("weight ", i)))
			sum += weights[i]
		}
		if sum == 0 {
			weights[0], sum = 1, 1
		}
		owner := make([]uint16, topology.RedisSlots)
		for s := range owner {
			owner[s] = uint16(s * 7 % n)
		}
		next, moves := RedisRebalance(owner, weights, RedisOptions{Threshold: .001, UseEmpty: true})
		count, moved, planned := make([]int, n), 0, 0
		for s, o := range next {
			count[o]++
			if o != owner[s] {
				moved++
			}
		}
		for _, m := range moves {
			planned += m.Count
		}
		if moved != planned {
			t.Fatalf("%d slots moved, %d planned", moved, planned)
		}
		for i, w := range weights {
			if share := topology.RedisSlots * w / sum; float64(count[i]) < share-2 || float64(count[i]) > share+float64(n)+1 || w == 0 && count[i] > n {
				t.Fatalf("node %d of weight %v of %v has %d slots", i, w, sum, count[i])
			}
		}
	})
}

func TestRedisCreate(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 7, 100, 1000, 16384} {
		count := make([]int, n)
		last := uint16(0)
		for s, o := range RedisCreate(n) {
			if count[o]++; o < last {
				t.Fatalf("%d masters: slot %d belongs to %d", n, s, o)
			}
			last = o
		}
		for i, c := range count {
			if c < topology.RedisSlots/n-1 || c > topology.RedisSlots/n+2 {
				t.Errorf("%d masters: master %d has %d slots", n, i, c)
			}
		}
	}
	if RedisCreate(0) != nil {
		t.Error("slots without masters")
	}
}
