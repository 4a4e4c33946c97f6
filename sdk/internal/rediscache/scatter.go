package rediscache

import (
	"context"
	"errors"
	"sync"

	"github.com/shardd/shardd/topology"
)

// step is what one operation sends to one node, and what takes the replies.
type step struct {
	cmds []Command
	took func([]Reply)
}

func toOwner(op *Op) topology.Node { return op.route.Node() }
func toOther(op *Op) topology.Node { return op.other }

// group is the operations of one node.
type group struct {
	node topology.Node
	ops  []*Op
}

// scatter sends each operation's commands to its node: one pipeline a node, all nodes at
// once.
func (c *Cache) scatter(ctx context.Context, ops []*Op, to func(*Op) topology.Node, make func(*Op) step) {
	groups := groupBy(ops, to)
	var all sync.WaitGroup
	for i, g := range groups {
		if i == len(groups)-1 {
			c.sendGroup(ctx, g, make)
			break
		}
		all.Go(func() { c.sendGroup(ctx, g, make) })
	}
	all.Wait()
}

func groupBy(ops []*Op, to func(*Op) topology.Node) []*group {
	var groups []*group
	index := make(map[string]*group, 1)
	for _, op := range ops {
		n := to(op)
		g := index[n.ID]
		if g == nil {
			g = &group{node: n}
			index[n.ID] = g
			groups = append(groups, g)
		}
		g.ops = append(g.ops, op)
	}
	return groups
}

// sendGroup sends a node its part. GETs that stand beside one another are one MGET.
func (c *Cache) sendGroup(ctx context.Context, g *group, make func(*Op) step) {
	var cmds []Command
	var take []func([]Reply) []Reply // of each run of commands: takes its replies, returns the rest
	var gets []step
	flush := func() {
		switch len(gets) {
		case 0:
			return
		case 1:
			cmds, take = append(cmds, gets[0].cmds[0]), append(take, taker(gets[0]))
		default:
			cmd := Command{"MGET"}
			for _, s := range gets {
				cmd = append(cmd, s.cmds[0][1])
			}
			mine := gets
			cmds, take = append(cmds, cmd), append(take, func(r []Reply) []Reply { takeMany(mine, r[0]); return r[1:] })
		}
		gets = nil
	}
	for _, op := range g.ops {
		s := make(op)
		if len(s.cmds) == 1 && s.cmds[0][0] == "GET" {
			gets = append(gets, s)
			continue
		}
		flush()
		cmds, take = append(cmds, s.cmds...), append(take, taker(s))
	}
	flush()
	replies := c.send.Send(ctx, g.node, cmds)
	for len(replies) < len(cmds) { // a broken Sender
		replies = append(replies, Reply{Err: errors.New("rediscache: a command without a reply")})
	}
	for _, t := range take {
		replies = t(replies)
	}
}

func taker(s step) func([]Reply) []Reply {
	return func(r []Reply) []Reply {
		s.took(r[:len(s.cmds)])
		return r[len(s.cmds):]
	}
}

// takeMany gives each GET its part of an MGET.
func takeMany(gets []step, r Reply) {
	values, ok := r.Value.([]any)
	for i, s := range gets {
		one := Reply{Err: r.Err}
		switch {
		case r.Err != nil:
		case !ok || len(values) != len(gets):
			one.Err = ErrAnswer
		default:
			one.Value = values[i]
		}
		s.took([]Reply{one})
	}
}
