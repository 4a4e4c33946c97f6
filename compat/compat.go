package compat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// Errors that New wraps.
var (
	// ErrSize: the configuration and weights ask for more points or entries
	// than this module takes; the text says how many. Scale the weights down.
	ErrSize = errors.New("compat: too many points")
	// ErrNodes: the foreign system itself cannot work with these nodes.
	ErrNodes = errors.New("compat: nodes that the foreign system refuses")
)

// Mapping maps keys as a foreign system does. One of Ring, Modulo, Jump, Score
// and Keyed is set, none for mode redis-slots, whose table is state (see
// RedisCreate, RedisRebalance). All methods are safe for concurrent use.
type Mapping struct {
	// Hash is what Locate of all but Keyed takes of a key.
	Hash   keyhash.Func
	Ring   *ring.Ring
	Modulo *Modulo
	Jump   *Jump
	Score  *Score
	Keyed  *Keyed
}

// server is a node of the foreign list.
type server struct {
	topology.Node
	index  int    // of the argument
	weight uint32 // by which it takes part, 0 = not
	name   string // what is hashed
	id     uint32 // HAProxy's
}

// New returns the mapping of nodes under f, whose indices are those of nodes.
// Nodes of weight 0, those that give their keys up and, where the foreign system
// has it so, those that are down take no part. f and nodes must be valid (see
// topology.Spec.Validate, topology.ValidateNodes). Errors wrap ErrSize, ErrNodes.
func New(f topology.Foreign, nodes []topology.Node) (*Mapping, error) {
	spec := topology.Spec{Compat: f}.Normal()
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	f = spec.Compat
	hash, err := keyHash(f)
	if err != nil {
		return nil, err
	}
	all := servers(f, nodes)
	live := slices.DeleteFunc(slices.Clone(all), func(s server) bool { return s.weight == 0 })
	m := &Mapping{Hash: hash}
	switch engineOf(f) {
	case engineRing:
		if f.Mode == topology.ModeGoZero && sharesPoints(f, live) {
			m.Keyed = newKeyed(f, all, live)
			break
		}
		m.Ring, err = newRing(f, len(nodes), all, live)
	case engineModulo:
		m.Modulo, err = newTable(f, hash, live)
	case engineJump:
		m.Jump = newJump(hash, live)
	case engineScore:
		m.Score = newScore(f, live)
	case engineKeyed:
		m.Keyed = newKeyed(f, all, live)
	case engineTries: // the table as long as nobody is down
		if m.Modulo, err = newTable(f, hash, live); len(all) > len(live) {
			m.Modulo, m.Keyed = nil, newKeyed(f, all, live)
		}
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// servers returns the nodes that the foreign list has, in its order, with what
// each is hashed by. Nodes that are down stay, with weight 0 where they leave.
func servers(f topology.Foreign, nodes []topology.Node) []server {
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		at[n.ID] = i
	}
	var list []server
	for _, n := range topology.InOrder(nodes) {
		if n.OwnerWeight() > 0 {
			s := server{Node: n, index: at[n.ID], weight: topology.Spec{Algorithm: topology.Compat, Compat: f}.OwnerWeight(n)}
			s.name = label(f, n)
			list = append(list, s)
		}
	}
	if f.Mode == topology.ModeHAProxy {
		numberServers(list)
	}
	if order := orderOf(f); order != nil {
		slices.SortStableFunc(list, order)
	}
	return list
}

// orderOf returns the order in which the foreign system takes its nodes; nil is
// that of its list.
func orderOf(f topology.Foreign) func(a, b server) int {
	switch f.Mode {
	case topology.ModeTwemproxy:
		return shorterFirst
	case topology.ModeGRPCRing, topology.ModeEnvoyMaglev, topology.ModeKkdaiMaglev, topology.ModeCilium:
		return byName
	case topology.ModeTysonmote: // ties go to the smaller
		return byName
	}
	if f.SortHosts {
		return byHost
	}
	return nil
}

func byName(a, b server) int { return strings.Compare(a.name, b.name) }

func shorterFirst(a, b server) int {
	if len(a.name) != len(b.name) {
		return len(a.name) - len(b.name)
	}
	return byName(a, b)
}

func byHost(a, b server) int {
	hostA, portA := splitAddr(a.Addr)
	hostB, portB := splitAddr(b.Addr)
	if c := strings.Compare(hostA, hostB); c != 0 {
		return c
	}
	return portA - portB
}

// Locate returns the node of the key whose hash under Hash is h, -1 if no node
// takes part or the mode is Keyed.
func (m *Mapping) Locate(h uint64) int {
	switch {
	case m.Ring != nil:
		return m.Ring.Locate(h)
	case m.Modulo != nil:
		return m.Modulo.Locate(h)
	case m.Jump != nil:
		return m.Jump.Locate(h)
	case m.Score != nil:
		return m.Score.Locate(h)
	}
	return -1
}

// LocateKey returns the node of key, under every mode but redis-slots.
func (m *Mapping) LocateKey(key string) int {
	if m.Keyed != nil {
		return m.Keyed.LocateKey(key)
	}
	return m.Locate(m.Hash.Sum(key))
}

func tooMany(n uint64) error {
	return fmt.Errorf("%w: %d, at most %d; scale the weights down", ErrSize, n, ring.MaxPoints)
}
