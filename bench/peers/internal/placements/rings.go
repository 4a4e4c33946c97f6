package placements

import (
	"slices"

	"github.com/cespare/xxhash/v2"
	groupcache "github.com/golang/groupcache/consistenthash"
	lafikl "github.com/lafikl/consistent"
	"github.com/serialx/hashring"
	"github.com/zeromicro/go-zero/core/hash"
	stathat "stathat.com/c/consistent"
)

// points is the number of virtual nodes a node, where it can be chosen.
const points = 160

func rings() []Subject {
	return []Subject{
		{Name: "golang/groupcache consistenthash, 160 points", Family: "ring", New: newGroupcache,
			Note: "32-bit CRC of number and name without a separator; no Remove: built anew"},
		{Name: "serialx/hashring, weight 160", Family: "ring", New: newSerialx, Note: "every change builds anew"},
		{Name: "stathat.com/c/consistent, 160 points", Family: "ring", New: newStathat,
			Note: "32-bit CRC of number and name without a separator; sorts all points at each Add"},
		{Name: "lafikl/consistent, 10 points", Family: "ring", New: newLafikl, Note: "10 points, fixed; sorts all points at each Add"},
		{Name: "go-zero core/hash, 160 points", Family: "ring", New: newGoZero, Note: "sorts all points at each Add"},
	}
}

// groupcacheRing is groupcache's Map, which can grow only.
type groupcacheRing struct {
	m     *groupcache.Map
	names []string
}

func newGroupcache(names []string) (Instance, error) {
	m := groupcache.New(points, nil)
	m.Add(names...)
	return &groupcacheRing{m, slices.Clone(names)}, nil
}

func (r *groupcacheRing) Pass(keys []string) int {
	sum := 0
	for _, k := range keys {
		sum += len(r.m.Get(k))
	}
	return sum
}

func (r *groupcacheRing) Owner(key string) string { return r.m.Get(key) }

func (r *groupcacheRing) Add(name string) error {
	r.m.Add(name)
	r.names = append(r.names, name)
	return nil
}

func (r *groupcacheRing) Remove(name string) error {
	r.names = slices.DeleteFunc(r.names, func(n string) bool { return n == name })
	r.m = groupcache.New(points, nil)
	r.m.Add(r.names...)
	return nil
}

type serialxRing struct{ r *hashring.HashRing }

func newSerialx(names []string) (Instance, error) {
	weights := make(map[string]int, len(names))
	for _, n := range names {
		weights[n] = points
	}
	return &serialxRing{hashring.NewWithWeights(weights)}, nil
}

func (r *serialxRing) Pass(keys []string) int {
	sum := 0
	for _, k := range keys {
		n, _ := r.r.GetNode(k)
		sum += len(n)
	}
	return sum
}

func (r *serialxRing) Owner(key string) string {
	n, _ := r.r.GetNode(key)
	return n
}

func (r *serialxRing) Add(name string) error {
	r.r = r.r.AddWeightedNode(name, points)
	return nil
}

func (r *serialxRing) Remove(name string) error {
	r.r = r.r.RemoveNode(name)
	return nil
}

type stathatRing struct{ c *stathat.Consistent }

func newStathat(names []string) (Instance, error) {
	c := stathat.New()
	c.NumberOfReplicas = points
	for _, n := range names {
		c.Add(n)
	}
	return stathatRing{c}, nil
}

func (r stathatRing) Pass(keys []string) int {
	sum := 0
	for _, k := range keys {
		n, _ := r.c.Get(k)
		sum += len(n)
	}
	return sum
}

func (r stathatRing) Owner(key string) string {
	n, _ := r.c.Get(key)
	return n
}

func (r stathatRing) Add(name string) error {
	r.c.Add(name)
	return nil
}

func (r stathatRing) Remove(name string) error {
	r.c.Remove(name)
	return nil
}

type lafiklRing struct{ c *lafikl.Consistent }

func newLafikl(names []string) (Instance, error) {
	c := lafikl.New()
	for _, n := range names {
		c.Add(n)
	}
	return lafiklRing{c}, nil
}

func (r lafiklRing) Pass(keys []string) int {
	sum := 0
	for _, k := range keys {
		n, _ := r.c.Get(k)
		sum += len(n)
	}
	return sum
}

func (r lafiklRing) Owner(key string) string {
	n, _ := r.c.Get(key)
	return n
}

func (r lafiklRing) Add(name string) error {
	r.c.Add(name)
	return nil
}

func (r lafiklRing) Remove(name string) error {
	r.c.Remove(name)
	return nil
}

type goZeroRing struct{ h *hash.ConsistentHash }

func newGoZero(names []string) (Instance, error) {
	h := hash.NewCustomConsistentHash(points, xxhash.Sum64)
	for _, n := range names {
		h.Add(n)
	}
	return goZeroRing{h}, nil
}

func (r goZeroRing) Pass(keys []string) int {
	sum := 0
	for _, k := range keys {
		n, _ := r.h.Get(k)
		sum += len(n.(string))
	}
	return sum
}

func (r goZeroRing) Owner(key string) string {
	n, _ := r.h.Get(key)
	return n.(string)
}

func (r goZeroRing) Add(name string) error {
	r.h.Add(name)
	return nil
}

func (r goZeroRing) Remove(name string) error {
	r.h.Remove(name)
	return nil
}
