package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/topology"
)

// AdmissionConfig says how registrations become declared state. All times are
// measured by the leader's monotonic clock, from what it sees itself, and begin
// anew with a new leader; no clock of a node counts.
type AdmissionConfig struct {
	// Join is how long a node has to be there, known as joining, before it
	// becomes active and owns keys; default 1 s, negative = not at all.
	Join time.Duration
	// Down is how long a node's lease has to be lost before it is down (it
	// keeps its keys, requests go to the next in order); default 2 s,
	// negative = not at all.
	Down time.Duration
	// Settle is how long it has to be lost before the node has left, and its
	// keys go to others; default 30 s, negative = not at all. It is also the
	// longest that a node which comes and goes is held down.
	Settle time.Duration
	// Forget is how long a node has to have left before it is no longer
	// declared at all; 0, the default = never.
	Forget time.Duration
	// MassLoss is the share of the members that own keys of which no more may
	// leave because their leases are lost at the same time: if more are, and
	// at least two, all of them are held as down, which moves no key, until
	// enough come back or an operator decides; default 0.5, negative = no
	// limit. So many do not die at once as often as a network or a check of
	// theirs fails.
	MassLoss float64
}

func (a AdmissionConfig) withDefaults() AdmissionConfig {
	a.Join = max(0, cmp.Or(a.Join, time.Second))
	a.Down = max(0, cmp.Or(a.Down, 2*time.Second))
	a.Settle = max(0, cmp.Or(a.Settle, 30*time.Second))
	if a.MassLoss = cmp.Or(a.MassLoss, 0.5); a.MassLoss < 0 {
		a.MassLoss = 1
	}
	return a
}

// admissionBy is the author of admission's edits in the cause of a version.
const admissionBy = "admission"

// admissionTick is the time between looks at a cluster that has members, behind
// what is told: for edits by operators, of which the roll tells nothing.
const admissionTick = 5 * time.Second

// admission turns registrations into declared state while its process leads.
//
// Every look takes a linearizable reading of the roll and of the declared state
// and makes one step of what admit says: first the marks, fenced by the
// leadership, which say what is about to be declared, then one edit of the
// declared state as it was read. It looks until there is nothing to do, so a
// leader that dies between the two leaves nothing half done: its successor
// finds the intention in the mark.
type admission struct {
	c     AdmissionConfig
	store Store
	rost  Roster
	lead  Leadership
	log   hclog.Logger
	seen  map[string]*sighting
	told  map[string]string       // complaint by node, see complain
	held  int                     // members that are lost and held as down; see MassLoss
	tell  func(held, waiting int) // is told when one of them changes
	// overlay is what this leader has said of the nodes' health; nil = nothing.
	overlay *Overlay
	fresh   uint32 // weight of a new node that asks for none
	waiting int    // members whose change waits until owners do not change in steps any more
}

// admit runs admission until ctx ends, the leadership is lost (ErrNotLeader) or
// the cluster is gone (ErrNoCluster).
func (c *Controller) admit(ctx context.Context, l Leadership) error {
	a := &admission{c: c.c.Admission.withDefaults(), store: c.c.Store, rost: c.c.Roster, lead: l, log: c.log.Named("admission"),
		seen: map[string]*sighting{}, told: map[string]string{}, tell: func(held, waiting int) { c.update(func(s *Status) { s.Held, s.Waiting = held, waiting }) }}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	bell := make(chan struct{}, 1)
	watch := make(chan error, 1)
	wg.Go(func() {
		watch <- a.rost.WatchRoll(ctx, func(Roll) error {
			select {
			case bell <- struct{}{}:
			default:
			}
			return nil
		})
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-watch:
			return err
		case <-bell:
		case <-timer.C:
		}
		wait, err := a.look(ctx)
		switch {
		case err == nil:
			failures = 0
		case errors.Is(err, ErrNotLeader) || errors.Is(err, ErrNoCluster):
			return err
		default:
			a.log.Debug("looking again", "error", err)
			if !pause(ctx, failures) {
				return ctx.Err()
			}
			failures++
			wait = 1
		}
		timer.Stop()
		if wait > 0 {
			timer.Reset(wait)
		}
	}
}

// look takes steps until there is nothing to do, and returns when the next one
// is due; 0 = when the roll changes.
func (a *admission) look(ctx context.Context) (time.Duration, error) {
	for {
		roll, err := a.rost.Roll(ctx)
		if err != nil {
			return 0, err
		}
		if err := a.tellHealth(ctx, roll); err != nil {
			return 0, err
		}
		now := time.Now()
		a.sight(roll, now)
		if len(roll.Live) == 0 && len(roll.Marks) == 0 {
			return 0, nil
		}
		s, err := a.store.Load(ctx)
		if err != nil {
			return 0, err
		}
		if s.Invalid != nil { // the controller says so
			return admissionTick, nil
		}
		p := a.plan(s.Declared, s.Head, roll, now)
		if len(p.marks) == 0 && len(p.nodes) == 0 {
			return min(p.due, admissionTick), nil
		}
		if err := a.carryOut(ctx, s, p); err != nil {
			return 0, err
		}
	}
}

// tellHealth says which nodes are bad by their own word, once for each change.
// Without members it says nothing: then nobody checks anything.
func (a *admission) tellHealth(ctx context.Context, roll Roll) error {
	now := roll.overlay()
	if a.overlay == nil && len(roll.Live) == 0 || a.overlay.Equal(&now) {
		return nil
	}
	if err := a.rost.SetOverlay(ctx, a.lead, now); err != nil {
		return err
	}
	if a.overlay != nil || len(now.Bad) > 0 {
		a.log.Info("health", "bad", now.Bad)
	}
	a.overlay = &now
	return nil
}

// carryOut writes what a plan says.
func (a *admission) carryOut(ctx context.Context, s State, p *plan) error {
	if len(p.marks) > 0 {
		if err := a.rost.Mark(ctx, a.lead, p.marks); err != nil {
			return err
		}
	}
	if len(p.nodes) == 0 {
		return nil
	}
	_, err := a.store.Declare(ctx, p.edit(s.Declared))
	if err != nil {
		return err
	}
	for _, c := range p.nodes {
		delete(a.told, c.id)
		a.log.Info("member", "node", c.id, "change", c.why, "state", c.state())
	}
	return nil
}

// change is one node's change of declared state.
type change struct {
	id   string
	to   topology.Node
	gone bool // no longer declared
	why  string
}

func (c change) state() string {
	if c.gone {
		return "forgotten"
	}
	return c.to.State.String()
}

// plan is one step.
type plan struct {
	nodes []change
	marks []Mark
	due   time.Duration // until the next step by time alone; at most an hour
}

func (p *plan) dueIn(d time.Duration) { p.due = min(p.due, max(d, time.Millisecond)) }

// edit makes the plan's changes, if the nodes are what they were in seen. Edits
// of other nodes in between do no harm: a cluster that is edited all the time
// would hold admission up otherwise.
func (p *plan) edit(seen topology.Declared) Edit {
	var why []string
	for _, c := range p.nodes {
		why = append(why, c.id+" "+c.why)
	}
	return Edit{By: admissionBy, Why: shorten(why), Apply: func(d topology.Declared) (topology.Declared, error) {
		for _, c := range p.nodes {
			if declaredNode(d, c.id) != declaredNode(seen, c.id) {
				return d, fmt.Errorf("%w: node %s was changed meanwhile", ErrConflict, c.id)
			}
			d.Nodes = apply(d.Nodes, c)
		}
		return d, nil
	}}
}

// declaredNode returns the node as it is declared; zero if it is not.
func declaredNode(d topology.Declared, id string) topology.Node {
	if i := indexNode(d.Nodes, id); i >= 0 {
		return d.Nodes[i]
	}
	return topology.Node{}
}

func apply(nodes []topology.Node, c change) []topology.Node {
	i := indexNode(nodes, c.id)
	switch {
	case i < 0 && !c.gone:
		return append(nodes, c.to)
	case i >= 0 && c.gone:
		return slices.Delete(nodes, i, i+1)
	case i >= 0:
		nodes[i] = c.to
	}
	return nodes
}

// shorten joins entries up to the limit of a note.
func shorten(list []string) string {
	s := strings.Join(list, ", ")
	for n := len(list) - 1; len(s) > MaxNoteLen; n-- {
		s = fmt.Sprintf("%s, and %d more", strings.Join(list[:n], ", "), len(list)-n)
	}
	return strings.TrimPrefix(s, ", ")
}
