package redis

import (
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// NewConsistentHash returns a function for redis.RingOptions.NewConsistentHash,
// where the names of the shards (the keys of RingOptions.Addrs) are node ids. The
// hash answers by the topology that client holds when go-redis asks for it, which it
// does whenever shards come, go, fail or recover: after a change of the topology
// call Ring.SetAddrs. NewRing does all of that.
//
// go-redis hashes only what stands in braces, so that "a{b}c" is placed as "b": give
// the cluster the hash tag "{}" where others route the same keys.
func NewConsistentHash(client *sdk.Client) func(shards []string) redis.ConsistentHash {
	t := &tables{client: client}
	return func(shards []string) redis.ConsistentHash { return newHash(t.newest(), shards) }
}

// tables keeps the table of the topology that was asked for last.
type tables struct {
	client *sdk.Client
	mu     sync.Mutex
	table  *placement.Table
}

// newest returns the table of the client's topology, nil if there is none.
func (t *tables) newest() *placement.Table { return t.of(t.client.Topology()) }

func (t *tables) of(topo *topology.Topology) *placement.Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	if topo == nil {
		return nil
	}
	if t.table == nil || t.table.Topology() != topo {
		table, err := placement.Next(t.table, topo)
		if err != nil {
			return t.table // the client has built the same: never
		}
		t.table = table
	}
	return t.table
}

// hash is one topology and the shards that the ring counts as well.
type hash struct {
	table *placement.Table
	live  []bool // by node index
	names []string
}

func newHash(table *placement.Table, shards []string) *hash {
	h := &hash{table: table}
	if table == nil {
		return h
	}
	topo := table.Topology()
	h.live, h.names = make([]bool, topo.Len()), make([]string, topo.Len())
	for i, n := range topo.Nodes() {
		h.names[i] = n.ID
	}
	for _, id := range shards {
		if i := topo.Index(id); i >= 0 {
			h.live[i] = topo.Node(i).State != topology.StateDown
		}
	}
	return h
}

// Get returns the shard for key: its owner, or the next node in the key's order
// that is up, and that the ring's heartbeat counts as up; "" if there is none.
func (h *hash) Get(key string) string {
	if h.table == nil {
		return ""
	}
	k := h.table.Hash(key)
	owner := h.table.Locate(k)
	if owner < 0 {
		return ""
	}
	if h.live[owner] {
		return h.names[owner]
	}
	for _, i := range h.table.AppendReplicas(nil, k, len(h.live)) {
		if h.live[i] {
			return h.names[i]
		}
	}
	return ""
}

// Ring is a redis.Ring that follows a topology. End it with Close.
type Ring struct {
	*redis.Ring
	cancel func()
}

// NewRing returns a ring whose shards are the nodes that client follows, named by
// their ids, and whose hash is theirs. opt has everything else; its Addrs and
// NewConsistentHash are replaced, nil is the zero value. Shards of nodes that left
// are closed, those of new ones opened; keys go over with them in one step. For
// the connections a node and their age see PoolSize, MaxActiveConns, MinIdleConns
// and ConnMaxLifetime in opt.
func NewRing(client *sdk.Client, opt *redis.RingOptions) *Ring {
	var o redis.RingOptions
	if opt != nil {
		o = *opt
	}
	t := &tables{client: client}
	var mu sync.Mutex // the topology that the shards are those of
	topo := client.Topology()
	o.Addrs = addrs(topo)
	o.NewConsistentHash = func(shards []string) redis.ConsistentHash {
		mu.Lock()
		defer mu.Unlock()
		return newHash(t.of(topo), shards)
	}
	r := &Ring{Ring: redis.NewRing(&o)}
	r.cancel = client.OnChange(func(ch sdk.Change) {
		mu.Lock()
		topo = ch.To
		mu.Unlock()
		r.SetAddrs(addrs(ch.To))
	})
	return r
}

// Close closes the ring and its shards, and leaves the sdk.Client open.
func (r *Ring) Close() error {
	r.cancel()
	return r.Ring.Close()
}

// addrs are the nodes of t by id, as a ring wants them.
func addrs(t *topology.Topology) map[string]string {
	m := make(map[string]string)
	if t == nil {
		return m
	}
	for _, n := range t.Nodes() {
		if n.Addr != "" && n.OwnerWeight() > 0 {
			m[n.ID] = n.Addr
		}
	}
	return m
}
