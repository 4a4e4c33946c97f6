// Package rediscluster reads the slots of a running Redis Cluster.
//
// It asks one node: CLUSTER SHARDS (Redis 7.0) or CLUSTER SLOTS for the masters
// and their slots, and CLUSTER NODES for the order of masters, which redis-cli's
// planner looks at, and for slots that are being moved. Where CLUSTER NODES is not
// allowed the order is that of the first answer. It writes nothing.
//
// # Source
//
// Redis 7.0, commands CLUSTER SHARDS, CLUSTER SLOTS and CLUSTER NODES.
package rediscluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/topology"
)

// Options reads an address: "host:port", or redis://user:password@host:port, with
// rediss:// for TLS. password is used where the address has none; "" = none. An
// error does not repeat the address, which may have a password.
func Options(addr, password string) (*redis.Options, error) {
	o := &redis.Options{Addr: addr}
	if strings.Contains(addr, "://") {
		var err error
		if o, err = redis.ParseURL(addr); err != nil {
			var u *url.Error
			if errors.As(err, &u) {
				err = u.Err
			}
			return nil, fmt.Errorf("rediscluster: address: %w", err)
		}
	}
	if o.Password == "" {
		o.Password = password
	}
	o.Protocol, o.MaxRetries, o.DisableIdentity = 2, 1, true
	return o, nil
}

// Read returns the masters of the cluster that c is a node of. cluster is its name
// in the result, "" = "imported".
func Read(ctx context.Context, c *redis.Client, cluster string) (foreign.Result, error) {
	masters, err := shards(ctx, c)
	if err != nil {
		return foreign.Result{}, fmt.Errorf("rediscluster: %s: %w", c.Options().Addr, err)
	}
	o := foreign.Options{Cluster: cluster}
	r, err := foreign.RedisCluster(masters, o)
	text, nodesErr := c.ClusterNodes(ctx).Result()
	if err != nil || nodesErr != nil {
		return r, err
	}
	// The answer to CLUSTER NODES has all of it; the other one vouches for it.
	listed, err := foreign.Parse(foreign.Redis, "CLUSTER NODES of "+c.Options().Addr, []byte(withHost(text, host(c))), o)
	if err != nil {
		return listed, err
	}
	if !sameSlots(r.Declared, listed.Declared) {
		return foreign.Result{}, fmt.Errorf("rediscluster: %s: slots are being moved right now; try again when they are not", c.Options().Addr)
	}
	return listed, nil
}

// withHost gives the node that was asked its address, which it does not know itself
// until it has met another.
func withHost(nodes, asked string) string {
	lines := strings.Split(nodes, "\n")
	for i, line := range lines {
		if id, rest, ok := strings.Cut(line, " :"); ok && !strings.Contains(id, " ") {
			if strings.Contains(asked, ":") {
				asked = "[" + asked + "]"
			}
			lines[i] = id + " " + asked + ":" + rest
		}
	}
	return strings.Join(lines, "\n")
}

// shards asks for the masters, as the server's release has it.
func shards(ctx context.Context, c *redis.Client) ([]foreign.RedisMaster, error) {
	list, err := c.ClusterShards(ctx).Result()
	if err == nil {
		return fromShards(list, host(c)), nil
	}
	slots, slotsErr := c.ClusterSlots(ctx).Result() //nolint:staticcheck // servers before 7.0 have nothing else
	if slotsErr != nil {
		return nil, slotsErr
	}
	return fromSlots(slots, host(c)), nil
}

// host is what an empty endpoint in an answer stands for: the address asked.
func host(c *redis.Client) string {
	h, _, _ := net.SplitHostPort(c.Options().Addr)
	return h
}

func fromShards(list []redis.ClusterShard, asked string) []foreign.RedisMaster {
	var out []foreign.RedisMaster
	for _, s := range list {
		for _, n := range s.Nodes {
			if n.Role != "master" {
				continue
			}
			port := n.Port
			if port == 0 {
				port = n.TLSPort
			}
			m := foreign.RedisMaster{ID: n.ID, Addr: net.JoinHostPort(cmp.Or(n.IP, n.Endpoint, asked), strconv.FormatInt(port, 10)), Failed: n.Health == "fail"}
			for _, r := range s.Slots {
				m.Slots = append(m.Slots, foreign.SlotRange{First: int(r.Start), Last: int(r.End)})
			}
			out = append(out, m)
		}
	}
	return out
}

func fromSlots(list []redis.ClusterSlot, asked string) []foreign.RedisMaster {
	var out []foreign.RedisMaster
	for _, s := range list {
		if len(s.Nodes) == 0 {
			continue
		}
		n := s.Nodes[0]
		i := slices.IndexFunc(out, func(m foreign.RedisMaster) bool { return m.ID == n.ID })
		if i < 0 {
			addr := n.Addr
			if strings.HasPrefix(addr, ":") {
				addr = net.JoinHostPort(asked, addr[1:])
			}
			out, i = append(out, foreign.RedisMaster{ID: n.ID, Addr: addr}), len(out)
		}
		out[i].Slots = append(out[i].Slots, foreign.SlotRange{First: s.Start, Last: s.End})
	}
	return out
}

// sameSlots says whether every slot has the same master, by its id in Redis.
func sameSlots(a, b topology.Declared) bool {
	x, _, errX := topology.SlotLayout(a.Nodes)
	y, _, errY := topology.SlotLayout(b.Nodes)
	if errX != nil || errY != nil {
		return false
	}
	for s := range x {
		if x[s] == topology.NoOwner || y[s] == topology.NoOwner || a.Nodes[x[s]].Label != b.Nodes[y[s]].Label {
			return false
		}
	}
	return true
}
