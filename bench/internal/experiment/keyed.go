package experiment

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// mostNodes is what a ring of 160 points a node takes.
const mostNodes = 26_214

// cluster makes versions of a cluster's topology, as a controller does.
type cluster struct {
	draft  topology.Draft
	table  *placement.Table
	tenure bool // versions record since when nodes own what they own
}

func newCluster(spec topology.Spec, nodes int) (*cluster, error) {
	c := &cluster{draft: topology.Draft{
		Cluster: "sim", ID: topology.ClusterID{1}, History: 1, Spec: spec, Nodes: clusterNodes(nodes),
	}}
	return c, c.publish(c.draft.Nodes)
}

// clusterNodes returns n nodes in the order of their ids.
func clusterNodes(n int) []topology.Node {
	list := make([]topology.Node, n)
	for i := range list {
		list[i] = topology.Node{ID: nodeID(i), Addr: fmt.Sprintf("10.0.%d.%d:11211", i/256, i%256), Weight: 1}
	}
	return list
}

func nodeID(i int) string { return fmt.Sprintf("n%05d", i) }

// next is the draft of the next version.
func (c *cluster) next(nodes []topology.Node) topology.Draft {
	d := c.draft
	d.Nodes, d.Version = nodes, topology.Version{Epoch: 1, Seq: 1}
	if c.table != nil {
		d.Version.Seq = c.table.Topology().Version().Seq + 1
	}
	return d
}

// publish makes the next version.
func (c *cluster) publish(nodes []topology.Node) error {
	table, err := placement.UpdateWith(c.table, c.next(nodes), placement.UpdateOptions{Tenure: c.tenure})
	if err == nil {
		c.table = table
	}
	return err
}

// still is a source that delivers one topology and no more.
type still struct{ topology *topology.Topology }

// Watch implements sdk.Source.
func (s still) Watch(ctx context.Context, _ topology.Ref, fn func(*topology.Topology) error) error {
	if err := fn(s.topology); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// keys draws keys by Zipf's law: key k with probability in proportion to 1/(k+1)^s.
type keys struct {
	names []string
	sums  []float64
}

func newKeys(seed uint64, count int, s float64) *keys {
	k := &keys{}
	sum := 0.0
	for i := range count {
		sum += math.Pow(float64(i+1), -s)
		k.names = append(k.names, fmt.Sprintf("key-%d-%d", seed, i))
		k.sums = append(k.sums, sum)
	}
	return k
}

// draw returns the number of a key.
func (k *keys) draw(dice *sim.Dice) int {
	return sort.SearchFloat64s(k.sums, dice.Unit()*k.sums[len(k.sums)-1])
}

// routed is a fleet whose clients are SDK clients: each request is for a key, and
// goes where Acquire says.
type routed struct {
	fleet
	keys    *keys
	clients []*sdk.Client
	dice    *sim.Dice    // keys, and the clients' chance
	now     atomic.Int64 // the clients' clock; their upkeep reads it, too

	tickets []sdk.Ticket // open ones, by token
	free    []int64
	pending int64 // token of the request that was just picked
	key     int   // and its key
	home    int   // requests at their keys' owner, of
	all     int   // those picked

}

// newRouted makes m clients of the cluster.
func newRouted(ctx context.Context, f fleet, c *cluster, m int, k *keys, opts ...sdk.Option) (*routed, error) {
	r := &routed{fleet: f, keys: k, dice: sim.NewDice(f.cfg.Seed, 200)}
	clock := func() time.Duration { return time.Duration(r.now.Load()) }
	opts = append(opts, sdk.WithClock(clock), sdk.WithChance(r.dice.Bits))
	for range m {
		client, err := sdk.New(still{c.table.Topology()}, opts...)
		if err != nil {
			return nil, err
		}
		r.clients = append(r.clients, client)
		if err := client.WaitReady(ctx); err != nil {
			return nil, err
		}
		set, err := sim.NewSet(len(f.cfg.Servers))
		if err != nil {
			return nil, err
		}
		r.cfg.Clients = append(r.cfg.Clients, sim.Client{Picker: &byKey{r, client, set}})
	}
	r.cfg.Arrived = func(int) int64 { return r.pending }
	ended := r.cfg.Ended
	r.cfg.Ended = func(e sim.End) {
		r.now.Store(int64(e.At))
		t := &r.tickets[e.Token]
		t.Report(int64(r.sim.Load(e.Server)))
		t.Done(sdk.Success)
		r.free = append(r.free, e.Token)
		if ended != nil {
			ended(e)
		}
	}
	return r, nil
}

// close ends the clients.
func (r *routed) close() {
	for _, c := range r.clients {
		_ = c.Close() // memory only
	}
}

// slot returns a place for a ticket.
func (r *routed) slot() int64 {
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		return i
	}
	r.tickets = append(r.tickets, sdk.Ticket{})
	return int64(len(r.tickets) - 1)
}

// byKey is a client's picker: it draws a key and asks the SDK.
type byKey struct {
	r      *routed
	client *sdk.Client
	set    *balance.Set
}

// Pick implements balance.Picker.
func (b *byKey) Pick(now time.Duration, _ uint64, _ []*balance.Node) (balance.Ticket, error) {
	r := b.r
	r.now.Store(int64(now))
	r.key = r.keys.draw(r.dice)
	r.pending = r.slot()
	t := &r.tickets[r.pending]
	var err error
	if *t, err = b.client.Acquire(context.Background(), r.keys.names[r.key], 1); err != nil {
		return balance.Ticket{}, err
	}
	r.all++
	if t.ID() == t.Route().Owner().ID {
		r.home++
	}
	i, err := strconv.Atoi(t.ID()[1:])
	if err != nil {
		return balance.Ticket{}, err
	}
	return b.set.Take(i, now), nil
}

// Next implements balance.Picker; the SDK follows topologies by itself.
func (b *byKey) Next(*balance.Set) (balance.Picker, error) { return b, nil }

// athome is the share of requests that went to their keys' owners.
func (r *routed) athome() float64 { return float64(r.home) / float64(max(1, r.all)) }
