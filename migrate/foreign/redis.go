package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// RedisMaster is a master of a Redis Cluster.
type RedisMaster struct {
	ID     string // 40 hexadecimal digits
	Addr   string // host:port
	Slots  []SlotRange
	Failed bool // by the vote of the cluster
	line   int
}

// SlotRange is a stretch of slots, both ends included.
type SlotRange struct{ First, Last int }

// RedisCluster returns the cluster of these masters in this order, which is that
// of redis-cli: the asked node first. Masters without slots have weight 0. Errors
// are *Error.
func RedisCluster(masters []RedisMaster, o Options) (Result, error) {
	d := redisDraft()
	for _, m := range masters {
		d.redisMaster(m)
	}
	r, err := Result{}, d.covered()
	if err == nil {
		r, err = d.result(Redis, o)
	}
	var e *Error
	if errors.As(err, &e) {
		e.File = "cluster"
	}
	return r, err
}

func redisDraft() *draft {
	return &draft{spec: topology.Spec{Algorithm: topology.Compat, Compat: topology.Foreign{Mode: topology.ModeRedisSlots}}}
}

func (d *draft) redisMaster(m RedisMaster) {
	n := topology.Node{Addr: m.Addr, Label: m.ID, Weight: 1}
	if m.Failed {
		n.State = topology.StateDown
	}
	ranges := make([]string, len(m.Slots))
	for i, r := range m.Slots {
		ranges[i] = strconv.Itoa(r.First)
		if r.Last != r.First {
			ranges[i] += "-" + strconv.Itoa(r.Last)
		}
	}
	name := m.Addr
	if name == "" {
		name = m.ID
	}
	if n.Slots = strings.Join(ranges, " "); n.Slots == "" {
		n.Weight = 0
		d.note("%s is a master without slots and has weight 0, as redis-cli leaves it out; give it a weight to use it", name)
	}
	d.add(m.line, name, n)
}

// parseRedis reads nodes.conf, or what CLUSTER NODES answers.
func parseRedis(data []byte, _ Options) (*draft, error) {
	if err := plainText(data); err != nil {
		return nil, err
	}
	var masters []RedisMaster
	d, line, replicas := redisDraft(), 0, 0
	for b := range bytes.Lines(data) {
		line++
		f := strings.Fields(string(b))
		if len(f) == 0 || f[0] == "vars" || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) < 8 || !nodeHash(f[0]) {
			return nil, fault(line, "", "%q is no line of nodes.conf: want id, address, flags, master, three numbers, link and slots", clipTo(string(bytes.TrimSpace(b)), 60))
		}
		flags := strings.Split(f[2], ",")
		if !slices.Contains(flags, "master") || slices.Contains(flags, "handshake") {
			replicas++
			continue
		}
		m := RedisMaster{ID: f[0], Addr: redisAddr(f[1]), Failed: slices.Contains(flags, "fail"), line: line}
		if err := d.redisSlots(&m, f[8:]); err != nil {
			return nil, fault(line, f[0], "%w", err)
		}
		if slices.Contains(flags, "myself") { // redis-cli begins with the node it asks
			masters = slices.Insert(masters, 0, m)
		} else {
			masters = append(masters, m)
		}
	}
	for _, m := range masters {
		d.redisMaster(m)
	}
	if replicas > 0 {
		d.note("%d replicas are left out: the nodes of the mapping are the masters", replicas)
	}
	return d, d.covered()
}

// covered refuses a cluster in which a slot has no master.
func (d *draft) covered() error {
	owner, _, err := topology.SlotLayout(d.nodes)
	if err != nil {
		return nil // the result says so, with the line
	}
	if s := slices.Index(owner, topology.NoOwner); s >= 0 && len(d.nodes) > 0 {
		return fault(0, "", "slot %d belongs to no master, so its keys have no node; mend the cluster first (redis-cli --cluster fix)", s)
	}
	return nil
}

// redisSlots reads "0-5460", "77" and "[77->-id]", an open slot, which belongs to
// the node that moves it out until the move is done.
func (d *draft) redisSlots(m *RedisMaster, list []string) error {
	for _, text := range list {
		if strings.HasPrefix(text, "[") {
			d.note("slot %s is being moved; finish that (redis-cli --cluster fix) before the mapping is taken over", strings.Trim(text, "[]"))
			continue
		}
		a, z, ranged := strings.Cut(text, "-")
		if !ranged {
			z = a
		}
		first, errA := strconv.ParseUint(a, 10, 16)
		last, errZ := strconv.ParseUint(z, 10, 16)
		if errA != nil || errZ != nil || first > last || last >= topology.RedisSlots {
			return fmt.Errorf("%q is no range of slots from 0 to %d", text, topology.RedisSlots-1)
		}
		m.Slots = append(m.Slots, SlotRange{int(first), int(last)})
	}
	return nil
}

// redisAddr takes "host:port@bus,hostname,..." down to host:port; a node without an
// address has none.
func redisAddr(text string) string {
	text, _, _ = strings.Cut(text, ",")
	text, _, _ = strings.Cut(text, "@")
	host, port, ok := cutLast(text, ":")
	if !ok || host == "" {
		return ""
	}
	return joinHostPort(host, port)
}

func nodeHash(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}
