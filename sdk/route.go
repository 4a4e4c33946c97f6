package sdk

import "github.com/shardd/shardd/topology"

// Route is where one request for a key goes: a node of one version. It is two
// words, copy it freely; its methods answer from the snapshot that the lookup
// was made on, for as long as the Route is kept, whatever the client has taken
// since. (Keeping it keeps that snapshot in memory.) The methods of the zero
// Route return zero values.
type Route struct {
	rec  *record
	hash uint64
}

// ID returns the node's id.
func (r Route) ID() string {
	if r.rec == nil {
		return ""
	}
	return r.rec.id
}

// Addr returns the node's address as it was published, usually "host:port".
func (r Route) Addr() string {
	if r.rec == nil {
		return ""
	}
	return r.rec.addr
}

// Zone returns the node's zone.
func (r Route) Zone() string {
	if r.rec == nil {
		return ""
	}
	return r.Node().Zone
}

// Node returns the node.
func (r Route) Node() topology.Node {
	if r.rec == nil {
		return topology.Node{}
	}
	return r.Topology().Node(int(r.rec.index))
}

// Hash returns the key's hash under the topology's key hash and hash tag.
func (r Route) Hash() uint64 { return r.hash }

// Version returns the version that the lookup was made on.
func (r Route) Version() topology.Version {
	if r.rec == nil {
		return topology.Version{}
	}
	return r.Topology().Version()
}

// Topology returns the topology that the lookup was made on, nil for the zero
// Route.
func (r Route) Topology() *topology.Topology {
	if r.rec == nil {
		return nil
	}
	return r.rec.snap.topology()
}

// Detour reports whether the node stands in for the key's owner, which is
// published as down or bad by its health (Client.Overlay). A value written on a detour is not on the owner when it
// comes back.
func (r Route) Detour() bool { return r.rec != nil && r.rec.detour }

// Owner returns the node that owns the key, which differs from Node on a
// Detour. It costs one more lookup.
func (r Route) Owner() topology.Node {
	if r.rec == nil {
		return topology.Node{}
	}
	t := r.rec.snap.table
	return t.Topology().Node(t.Locate(r.hash))
}

// Other returns the key's other owner while its owner is changing in steps
// (topology.Transition): the one before if the key has gone over already, where
// its value may still be, else the one after. ok is false where the key has one
// owner, and where the other one is where the request goes already, since it stands in
// for the owner (Detour). It costs two more lookups during a transition, nothing
// otherwise.
func (r Route) Other() (n topology.Node, ok bool) {
	if r.rec == nil {
		return topology.Node{}, false
	}
	t := r.rec.snap.table
	i := t.Other(r.hash)
	if i < 0 || i == int(r.rec.index) {
		return topology.Node{}, false
	}
	return t.Topology().Node(i), true
}

// OwnedSince returns the version since which the node has served the key without a
// gap, as one of as many nodes as the spec has replicas: a value that it stored for
// the key under an earlier one may have been overwritten or deleted elsewhere while
// the key was not its own. Store it with each value, and take what carries an earlier
// version for a miss. Who writes a key to one node only goes by FirstSince.
//
// A node that is published as down serves nothing: when it is up again its tenure
// begins anew, and what stands in for it has one meanwhile. What is not known exactly
// counts as later, never as earlier; see placement.Table.OwnedSince. The zero version
// means that by what is published requests for the key do not go to the node: nothing
// that it has can be told to be new. So it is where a client goes round a node for its
// health (Client.Overlay) or its load (Client.Acquire), which others need not do and
// no version tells: the node that is gone round misses what is written meanwhile, and
// nothing tells it apart. Who needs the fence writes and deletes by Route, and lets
// keys with the zero version wait, or fail (memcache.ErrDetour), until the node is up or
// published as down.
//
// The first call on a version makes an index, which costs what building its table
// does, unless Client.PrepareOwnedSince had it made; later ones cost a few lookups.
func (r Route) OwnedSince() topology.Version {
	if r.rec == nil {
		return topology.Version{}
	}
	return r.rec.snap.table.OwnedSince(r.hash, int(r.rec.index))
}

// FirstSince is OwnedSince for who writes a key to the first of its nodes only, the
// one that Client.Route returns: the version since which that has been this node.
func (r Route) FirstSince() topology.Version {
	if r.rec == nil {
		return topology.Version{}
	}
	return r.rec.snap.table.FirstSince(r.hash, int(r.rec.index))
}

// PrepareOwnedSince has what Route.OwnedSince and FirstSince look at made for the
// version held, before it returns, and from now on for each version before lookups go
// by it: no request waits for it. It costs about one more table build a version.
func (c *Client) PrepareOwnedSince() {
	c.tenures.Store(true)
	if t := c.snap.Load().table; t != nil {
		t.PrepareOwnedSince()
	}
}

// Replicas appends the nodes that hold the key to dst: as many distinct nodes
// as the spec has replicas, or all owners if those are fewer, in the key's
// order of preference, the owner first. Nodes that are down hold their keys and
// are among them; Client.RouteN is about where requests go instead.
func (r Route) Replicas(dst []topology.Node) []topology.Node {
	if r.rec == nil {
		return dst
	}
	var room [orderRoom]int
	t := r.rec.snap.table
	for _, i := range t.AppendReplicas(room[:0], r.hash, int(t.Topology().Spec().Replicas)) {
		dst = append(dst, t.Topology().Node(i))
	}
	return dst
}

// orderRoom is what placement.Table.AppendReplicas needs so that the largest
// number of replicas costs no allocation, also under the zone rule.
const orderRoom = 4 * topology.MaxReplicas

// Route returns where a request for key goes: to the node that owns the key, or
// to the next in the key's order that is up if the owner is published as down, or
// bad by its health (Client.Overlay).
// It takes no lock and allocates nothing. Errors: ErrNotReady, ErrNoNodes,
// ErrClosed.
func (c *Client) Route(key string) (Route, error) {
	s := c.snap.Load()
	if s.special {
		return s.routeSpecial(key)
	}
	h := s.table.Hash(key)
	return Route{&s.records[s.table.Locate(h)], h}, nil
}

// RouteBytes is Route for a key that is a byte slice. The slice is not kept.
func (c *Client) RouteBytes(key []byte) (Route, error) {
	s := c.snap.Load()
	if s.err != nil {
		return Route{}, s.err
	}
	h := s.table.HashBytes(key)
	if s.special {
		return Route{s.locateUp(h), h}, nil
	}
	return Route{&s.records[s.table.Locate(h)], h}, nil
}

func (s *snapshot) routeSpecial(key string) (Route, error) {
	if s.err != nil {
		return Route{}, s.err
	}
	h := s.table.Hash(key)
	return Route{s.locateUp(h), h}, nil
}

// RouteN appends to dst the first n nodes for requests for key: the key's order
// of preference, with nodes that are down behind the others. The first is the
// same as Route's. All are distinct and of one version; they are fewer than n
// only if fewer nodes own keys. n < 1 means the spec's number of replicas.
// Nothing is allocated if dst has room, no node is down and n is at most 16.
// Errors: as Route; dst is then returned as it was.
func (c *Client) RouteN(dst []Route, key string, n int) ([]Route, error) {
	s := c.snap.Load()
	if s.err != nil {
		return dst, s.err
	}
	if n < 1 {
		n = int(s.topology().Spec().Replicas)
	}
	h := s.table.Hash(key)
	if s.detours != nil {
		return s.routeAround(dst, h, n), nil
	}
	var room [orderRoom]int
	for _, i := range s.table.AppendReplicas(room[:0], h, n) {
		dst = append(dst, Route{&s.records[i], h})
	}
	return dst, nil
}

// routeAround is RouteN where some node is down.
func (s *snapshot) routeAround(dst []Route, h uint64, n int) []Route {
	order := s.table.AppendReplicas(nil, h, len(s.records))
	from := len(dst)
	for i, rank := 0, 0; i < len(order) && rank < n; i++ {
		if rec := &s.records[order[i]]; !rec.down {
			if rank < i {
				rec = &s.detours[order[i]]
			}
			dst = append(dst, Route{rec, h})
			rank++
		}
	}
	for i := 0; i < len(order) && len(dst)-from < n; i++ {
		if rec := &s.records[order[i]]; rec.down {
			dst = append(dst, Route{rec, h})
		}
	}
	return dst
}
