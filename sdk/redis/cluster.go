package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// ErrSpec says that the topology is not placed as Redis Cluster places keys, which
// go-redis' cluster client does by itself. Make the cluster with algorithm slots,
// slots.count 16384, key_hash crc16 and hash_tag "{}", or use Client.
var ErrSpec = errors.New("redis: the topology has another placement than Redis Cluster")

// slotCount is Redis Cluster's number of slots.
const slotCount = 16384

// ClusterSlots returns a function for redis.ClusterOptions.ClusterSlots: who has
// which slot, by the topology that client holds when go-redis asks. The first node
// of a range is the master, the others are the slot's replicas in order, without
// those that are published as down unless all are. Errors: sdk.ErrNotReady,
// sdk.ErrNoNodes, ErrSpec.
func ClusterSlots(client *sdk.Client) func(context.Context) ([]redis.ClusterSlot, error) {
	return func(context.Context) ([]redis.ClusterSlot, error) { return slotsOf(client.Topology()) }
}

func slotsOf(t *topology.Topology) ([]redis.ClusterSlot, error) {
	if t == nil {
		return nil, sdk.ErrNotReady
	}
	spec := t.Spec()
	if spec.Algorithm != topology.Slots || spec.SlotCount != slotCount || spec.KeyHash != topology.CRC16 || spec.HashTag != "{}" {
		return nil, fmt.Errorf("%w: algorithm %s, %d slots, key hash %s, hash tag %q", ErrSpec, spec.Algorithm, spec.SlotCount, spec.KeyHash, spec.HashTag)
	}
	o := t.Object(topology.KindSlots)
	if o == nil {
		return nil, topology.ErrMissingObject
	}
	var out []redis.ClusterSlot
	for slot := range slotCount {
		if n := len(out); n > 0 && sameOwners(o, slot-1, slot) {
			out[n-1].End = slot
			continue
		}
		nodes := slotNodes(t, o, slot)
		if len(nodes) == 0 {
			return nil, sdk.ErrNoNodes
		}
		out = append(out, redis.ClusterSlot{Start: slot, End: slot, Nodes: nodes})
	}
	return out, nil
}

func sameOwners(o *topology.Object, a, b int) bool {
	for r := range o.Rows() {
		if o.Entries(r)[a] != o.Entries(r)[b] {
			return false
		}
	}
	return true
}

// slotNodes returns the owners of a slot: those that are up, or all.
func slotNodes(t *topology.Topology, o *topology.Object, slot int) []redis.ClusterNode {
	var up, all []redis.ClusterNode
	for r := range o.Rows() {
		e := o.Entries(r)[slot]
		if e == topology.NoOwner {
			continue
		}
		i := t.Index(o.Nodes()[e])
		if i < 0 {
			continue
		}
		n := redis.ClusterNode{ID: t.Node(i).ID, Addr: t.Node(i).Addr}
		all = append(all, n)
		if t.Node(i).State != topology.StateDown {
			up = append(up, n)
		}
	}
	if len(up) > 0 {
		return up
	}
	return all
}

// Cluster is a redis.ClusterClient that follows a topology. End it with Close.
type Cluster struct {
	*redis.ClusterClient
	cancel func()
}

// NewCluster returns a cluster client over plain Redis servers that loads its slots
// from the topology, anew with every version. opt has everything else; its
// ClusterSlots is replaced, nil is the zero value. go-redis loads slots in the
// background, at most five times a second: for that long a command may go where
// the key was. Connections to nodes that left are closed by go-redis within a
// minute.
func NewCluster(client *sdk.Client, opt *redis.ClusterOptions) *Cluster {
	var o redis.ClusterOptions
	if opt != nil {
		o = *opt
	}
	o.ClusterSlots = ClusterSlots(client)
	c := &Cluster{ClusterClient: redis.NewClusterClient(&o)}
	c.cancel = client.OnChange(func(sdk.Change) { c.ReloadState(context.Background()) })
	return c
}

// Close closes the cluster client, and leaves the sdk.Client open.
func (c *Cluster) Close() error {
	c.cancel()
	return c.ClusterClient.Close()
}
