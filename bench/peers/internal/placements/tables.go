package placements

import (
	"fmt"
	"slices"

	buraksezer "github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-jump"
	dgryskimaglev "github.com/dgryski/go-maglev"
	"github.com/dgryski/go-rendezvous"
	"github.com/edwingeng/doublejump"
	kkdai "github.com/kkdai/maglev"
)

// tableSize is the number of entries of Maglev tables.
const tableSize = 65537

func tables() []Subject {
	return []Subject{
		{Name: "buraksezer/consistent, 16381 partitions", Family: "partitions", New: newPartitions,
			Note: "20 points a node, load 1.25; sorts all points for each node when built"},
		{Name: "dgryski/go-jump and a list", Family: "jump", New: newJumpList,
			Note: "has buckets only; a node that leaves the list shifts all after it"},
		{Name: "edwingeng/doublejump", Family: "jump", New: newDoubleJump, Note: "not for concurrent changes"},
		{Name: "dgryski/go-rendezvous", Family: "rendezvous", Linear: true, New: newDgryskiRendezvous, Note: "Remove panics: built anew"},
		{Name: "dgryski/go-maglev, 65537", Family: "maglev", New: newDgryskiMaglev, Note: "no Add: built anew"},
		{Name: "kkdai/maglev, 65537", Family: "maglev", New: newKkdai, MaxNodes: 1000,
			Why: "needs 512 KiB a node to build", Note: "every change builds anew"},
	}
}

// member is a node for buraksezer/consistent.
type member string

func (m member) String() string { return string(m) }

// hasher is xxhash for buraksezer/consistent.
type hasher struct{}

func (hasher) Sum64(b []byte) uint64 { return xxhash.Sum64(b) }

type partitions struct{ c *buraksezer.Consistent }

func newPartitions(names []string) (Instance, error) {
	members := make([]buraksezer.Member, len(names))
	for i, n := range names {
		members[i] = member(n)
	}
	c := buraksezer.New(members, buraksezer.Config{Hasher: hasher{}, PartitionCount: 16381, ReplicationFactor: 20, Load: 1.25})
	return partitions{c}, nil
}

func (p partitions) Pass(keys []string) int {
	sum := 0
	for _, k := range keys {
		sum += len(p.c.LocateKey([]byte(k)).(member))
	}
	return sum
}

func (p partitions) Owner(key string) string { return p.c.LocateKey([]byte(key)).String() }

func (p partitions) Add(name string) error {
	p.c.Add(member(name))
	return nil
}

func (p partitions) Remove(name string) error {
	p.c.Remove(name)
	return nil
}

// jumpList is go-jump with the list of names that a caller has to keep.
type jumpList struct{ names []string }

func newJumpList(names []string) (Instance, error) { return &jumpList{slices.Clone(names)}, nil }

func (j *jumpList) Pass(keys []string) int {
	names, sum := j.names, 0
	for _, k := range keys {
		sum += len(names[jump.Hash(xxhash.Sum64String(k), len(names))])
	}
	return sum
}

func (j *jumpList) Owner(key string) string {
	return j.names[jump.Hash(xxhash.Sum64String(key), len(j.names))]
}

func (j *jumpList) Add(name string) error {
	j.names = append(j.names, name)
	return nil
}

func (j *jumpList) Remove(name string) error {
	j.names = slices.DeleteFunc(j.names, func(n string) bool { return n == name })
	return nil
}

type doubleJump struct{ h *doublejump.Hash }

func newDoubleJump(names []string) (Instance, error) {
	h := doublejump.NewHash()
	for _, n := range names {
		h.Add(n)
	}
	return doubleJump{h}, nil
}

func (d doubleJump) Pass(keys []string) int {
	sum := 0
	for _, k := range keys {
		sum += len(d.h.Get(xxhash.Sum64String(k)).(string))
	}
	return sum
}

func (d doubleJump) Owner(key string) string { return d.h.Get(xxhash.Sum64String(key)).(string) }

func (d doubleJump) Add(name string) error {
	d.h.Add(name)
	return nil
}

func (d doubleJump) Remove(name string) error {
	d.h.Remove(name)
	return nil
}

// dgryskiRendezvous keeps the names, because Remove reads beyond the end of its
// own list and panics.
type dgryskiRendezvous struct {
	r     *rendezvous.Rendezvous
	names []string
}

func newDgryskiRendezvous(names []string) (Instance, error) {
	return &dgryskiRendezvous{rendezvous.New(names, xxhash.Sum64String), slices.Clone(names)}, nil
}

func (d *dgryskiRendezvous) Pass(keys []string) int {
	sum := 0
	for _, k := range keys {
		sum += len(d.r.Lookup(k))
	}
	return sum
}

func (d *dgryskiRendezvous) Owner(key string) string { return d.r.Lookup(key) }

func (d *dgryskiRendezvous) Add(name string) error {
	d.r.Add(name)
	d.names = append(d.names, name)
	return nil
}

func (d *dgryskiRendezvous) Remove(name string) error {
	d.names = slices.DeleteFunc(d.names, func(n string) bool { return n == name })
	d.r = rendezvous.New(d.names, xxhash.Sum64String)
	return nil
}

type dgryskiMaglev struct {
	t     *dgryskimaglev.Table
	names []string
	dead  []int // indices of names that were removed, ascending
}

func newDgryskiMaglev(names []string) (Instance, error) {
	return &dgryskiMaglev{t: dgryskimaglev.New(names, tableSize), names: slices.Clone(names)}, nil
}

func (d *dgryskiMaglev) Pass(keys []string) int {
	names, sum := d.names, 0
	for _, k := range keys {
		sum += len(names[d.t.Lookup(xxhash.Sum64String(k))])
	}
	return sum
}

func (d *dgryskiMaglev) Owner(key string) string { return d.names[d.t.Lookup(xxhash.Sum64String(key))] }

// Add drops the dead and builds anew.
func (d *dgryskiMaglev) Add(name string) error {
	for _, i := range slices.Backward(d.dead) {
		d.names = slices.Delete(d.names, i, i+1)
	}
	d.names, d.dead = append(d.names, name), nil
	d.t = dgryskimaglev.New(d.names, tableSize)
	return nil
}

func (d *dgryskiMaglev) Remove(name string) error {
	i := slices.Index(d.names, name)
	if i < 0 {
		return fmt.Errorf("placements: %s is not there", name)
	}
	d.dead = append(d.dead, i)
	slices.Sort(d.dead)
	d.t.Rebuild(d.dead)
	return nil
}

type kkdaiMaglev struct{ m *kkdai.Maglev }

func newKkdai(names []string) (Instance, error) {
	m, err := kkdai.NewMaglev(names, tableSize)
	return kkdaiMaglev{m}, err
}

func (k kkdaiMaglev) Pass(keys []string) int {
	sum := 0
	for _, key := range keys {
		n, _ := k.m.Get(key)
		sum += len(n)
	}
	return sum
}

func (k kkdaiMaglev) Owner(key string) string {
	n, _ := k.m.Get(key)
	return n
}

func (k kkdaiMaglev) Add(name string) error { return k.m.Add(name) }

func (k kkdaiMaglev) Remove(name string) error { return k.m.Remove(name) }
