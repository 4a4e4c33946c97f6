package shardtest

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// TB is the part of testing.TB that a Plane needs. A call that cannot be done
// ends the test by Fatalf.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Plane is one cluster and the control plane that publishes it. It is a
// sdk.Source. Safe for concurrent use. Make one with New or NewFrom.
type Plane struct {
	t TB

	publishing sync.Mutex // held from the making of a version until it has arrived

	mu      sync.Mutex
	line    []version // the versions in force, in order; never empty
	table   *placement.Table
	history topology.History
	delay   time.Duration
	held    int  // versions that may be delivered while holding; -1 = all
	holds   int  // how many hold
	away    bool // watches are refused
	watches map[*watch]struct{}
	changed chan struct{} // closed and replaced with every change
}

type version struct {
	topology *topology.Topology
	due      time.Time // when it may arrive
}

// New returns a plane that has published version 1.1: a cluster named "test" of
// nodes with the given ids, weight 1 and no address, placed by 16384 slots, so
// that Assign works.
func New(t TB, ids ...string) *Plane {
	t.Helper()
	return NewFrom(t, topology.Declared{Cluster: "test", Spec: topology.Spec{Algorithm: topology.Slots}, Nodes: nodes(ids)})
}

// NewFrom returns a plane that has published version 1.1 of what is declared: any
// algorithm, addresses, zones, weights. An empty cluster name is "test".
func NewFrom(t TB, d topology.Declared) *Plane {
	t.Helper()
	if d.Cluster == "" {
		d.Cluster = "test"
	}
	p := &Plane{t: t, held: -1, history: topology.NewHistory(), watches: make(map[*watch]struct{}), changed: make(chan struct{})}
	table, err := placement.UpdateWith(nil, topology.Draft{Cluster: d.Cluster, ID: topology.NewClusterID(), History: p.history,
		Version: topology.Version{Epoch: 1, Seq: 1}, Spec: d.Spec, Nodes: d.Nodes}, placement.UpdateOptions{Tenure: true})
	if err != nil {
		t.Fatalf("shardtest: %v", err)
		return p
	}
	p.append(table)
	return p
}

func nodes(ids []string) []topology.Node {
	out := make([]topology.Node, len(ids))
	for i, id := range ids {
		out[i] = topology.Node{ID: id, Weight: 1}
	}
	return out
}

// Topology returns the newest version.
func (p *Plane) Topology() *topology.Topology {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.table.Topology()
}

// Owner returns the id of the node that owns key by the newest version, "" if no
// node owns anything.
func (p *Plane) Owner(key string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, err := p.table.Owner(key)
	if err != nil {
		return ""
	}
	return p.table.Topology().Node(i).ID
}

// Publish makes and publishes the version after the newest one, as a controller
// does: edit changes what is declared (spec and nodes). It waits until every
// client goes by it; see the package's law.
func (p *Plane) Publish(edit func(*topology.Declared)) *topology.Topology {
	p.t.Helper()
	return p.publish(func(head *topology.Topology) (*placement.Table, error) {
		return placement.UpdateWith(p.table, following(head, edit), placement.UpdateOptions{Tenure: true})
	})
}

// Add publishes a version with these nodes besides those that are there.
func (p *Plane) Add(add ...topology.Node) *topology.Topology {
	p.t.Helper()
	return p.Publish(func(d *topology.Declared) { d.Nodes = append(d.Nodes, add...) })
}

// Remove publishes a version without the nodes of these ids.
func (p *Plane) Remove(ids ...string) *topology.Topology {
	p.t.Helper()
	return p.Publish(func(d *topology.Declared) {
		for _, id := range ids {
			i := p.find(d.Nodes, id)
			if i >= 0 {
				d.Nodes = append(d.Nodes[:i], d.Nodes[i+1:]...)
			}
		}
	})
}

// SetState publishes a version in which the node is in this state.
func (p *Plane) SetState(id string, s topology.State) *topology.Topology {
	p.t.Helper()
	return p.Publish(func(d *topology.Declared) {
		if i := p.find(d.Nodes, id); i >= 0 {
			d.Nodes[i].State = s
		}
	})
}

// SetAddr publishes a version in which the node is at this address. No key moves.
func (p *Plane) SetAddr(id, addr string) *topology.Topology {
	p.t.Helper()
	return p.Publish(func(d *topology.Declared) {
		if i := p.find(d.Nodes, id); i >= 0 {
			d.Nodes[i].Addr = addr
		}
	})
}

func (p *Plane) find(nodes []topology.Node, id string) int {
	p.t.Helper()
	for i, n := range nodes {
		if n.ID == id {
			return i
		}
	}
	p.t.Fatalf("shardtest: there is no node %q", id)
	return -1
}

// Assign publishes a version in which node id owns key, and every other key of
// its slot with it. The plane must be placed by slots, as New's is.
func (p *Plane) Assign(key, id string) *topology.Topology {
	p.t.Helper()
	return p.AssignAll(map[string]string{key: id})
}

// AssignAll publishes one version in which each key, as named by the map, is
// owned by the node of that id. Two keys of one slot cannot go to different nodes;
// declare more slots, at most topology.MaxSlots, where they do.
func (p *Plane) AssignAll(owners map[string]string) *topology.Topology {
	p.t.Helper()
	return p.publish(func(head *topology.Topology) (*placement.Table, error) {
		object, err := p.assigned(head, owners)
		if err != nil {
			return nil, err
		}
		d := head.Draft()
		d.Version.Seq++
		d.Parent, d.Objects, d.Mapping = head.Digest(), []*topology.Object{object}, topology.Digest{}
		d.Cause = topology.Cause{Kind: "keys assigned"}
		if err := placement.Record(p.table, &d); err != nil {
			return nil, err
		}
		t, err := topology.New(d)
		if err != nil {
			return nil, err
		}
		return withMapping(t)
	})
}

// withMapping returns the table of t, whose topology carries the mapping digest.
func withMapping(t *topology.Topology) (*placement.Table, error) {
	table, err := placement.New(t)
	if err != nil {
		return nil, err
	}
	d := t.Draft()
	d.Mapping = table.Digest()
	if t, err = topology.New(d); err != nil {
		return nil, err
	}
	return placement.New(t)
}

// assigned returns head's slots with those of the keys given to other nodes.
func (p *Plane) assigned(head *topology.Topology, owners map[string]string) (*topology.Object, error) {
	old := head.Object(topology.KindSlots)
	if old == nil {
		return nil, errors.New("keys can be assigned under the algorithm slots only; make the plane with New")
	}
	ids, entries := make([]string, head.Len()), make([]uint16, 0, old.Rows()*old.Size())
	for i, n := range head.Nodes() {
		ids[i] = n.ID
	}
	for r := range old.Rows() {
		for _, e := range old.Entries(r) {
			if e != topology.NoOwner {
				e = uint16(head.Index(old.Nodes()[e]))
			}
			entries = append(entries, e)
		}
	}
	taken := make(map[int]string)
	for key, id := range owners {
		to := head.Index(id)
		if to < 0 || head.Node(to).OwnerWeight() == 0 {
			return nil, fmt.Errorf("node %q owns no keys: it is not there, has weight 0 or is not active", id)
		}
		hi, _ := bits.Mul64(p.table.Hash(key), uint64(old.Size()))
		slot := int(hi)
		if other, ok := taken[slot]; ok && other != id {
			return nil, fmt.Errorf("key %q shares slot %d with a key for another node; take other keys or more slots", key, slot)
		}
		taken[slot] = id
		give(entries, old.Size(), slot, uint16(to))
	}
	return topology.NewObject(topology.KindSlots, old.Rows(), ids, entries)
}

// give makes to the first owner of the slot; where it was another of its owners,
// the two change places.
func give(entries []uint16, size, slot int, to uint16) {
	first := entries[slot]
	for at := slot + size; at < len(entries); at += size {
		if entries[at] == to {
			entries[at] = first
		}
	}
	entries[slot] = to
}

// RaiseEpoch publishes the newest version anew as the first one of the next epoch
// and of a fresh history, as an operator does after a store has gone back.
func (p *Plane) RaiseEpoch() *topology.Topology {
	p.t.Helper()
	return p.publish(func(head *topology.Topology) (*placement.Table, error) {
		d := head.Draft()
		p.history = topology.NewHistory()
		d.Version, d.History, d.Parent = topology.Version{Epoch: d.Version.Epoch + 1, Seq: 1}, p.history, head.Digest()
		t, err := topology.New(d)
		if err != nil {
			return nil, err
		}
		return placement.New(t)
	})
}

func (p *Plane) publish(make func(head *topology.Topology) (*placement.Table, error)) *topology.Topology {
	p.t.Helper()
	p.publishing.Lock()
	defer p.publishing.Unlock()
	table, err := make(p.table.Topology()) // written under publishing alone
	if err != nil {
		p.t.Fatalf("shardtest: %v", err)
		return nil
	}
	p.mu.Lock()
	p.append(table)
	p.mu.Unlock()
	if err := p.Settle(context.Background()); err != nil {
		p.t.Fatalf("shardtest: %v", err)
	}
	return table.Topology()
}

// append makes table the newest version. Called with mu held, or before anybody
// else has the plane.
func (p *Plane) append(table *placement.Table) {
	p.table = table
	p.line = append(p.line, version{table.Topology(), time.Now().Add(p.delay)})
	p.tell()
}

// tell wakes all who wait for a change; mu is held.
func (p *Plane) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}
