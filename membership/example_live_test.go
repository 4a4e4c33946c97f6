package membership_test

import (
	"context"
	"fmt"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// Who is there: presences under leases.
func ExampleRoster() {
	ctx := context.Background()
	_, cluster := published(ctx)
	member, err := membership.Register(ctx, cluster.(membership.Registrar), membership.Registration{ID: "a", Addr: "10.0.0.1:11211"})
	check(err)
	defer func() { check(member.Close()) }()
	check(member.SetHealth(membership.HealthBad, "disk full"))

	roster := cluster.(membership.Roster)
	for there := false; !there; {
		var roll membership.Roll
		roll, err = roster.Roll(ctx)
		check(err)
		for _, live := range roll.Live {
			health := live.Health
			if there = health == membership.HealthBad; there {
				fmt.Println(live.ID, live.Addr, live.Incarnation, health, live.Reason)
			}
		}
	}
	s := member.Status()
	fmt.Println(s.Registered, s.Incarnation, s.Losses, s.Err)
	// Output:
	// a 10.0.0.1:11211 1 bad disk full
	// true 1 0 <nil>
}

// A presence by hand, without the loop that Register runs: for whoever has a
// lease of another kind.
func ExamplePresence() {
	ctx := context.Background()
	_, cluster := published(ctx)
	var presence membership.Presence
	presence, err := cluster.(membership.Registrar).Attach(ctx, "a", time.Minute,
		func(id topology.ClusterID, held *membership.Live) (membership.Live, error) {
			fmt.Println("held by another process:", held != nil)
			return membership.Live{ID: "a", Cluster: id, Owner: "0123456789abcdef0123456789abcdef", Incarnation: 1}, nil
		})
	check(err)
	roll, err := cluster.(membership.Roster).Roll(ctx)
	check(err)
	fmt.Println(len(roll.Live))

	check(presence.End(ctx))
	roll, err = cluster.(membership.Roster).Roll(ctx)
	check(err)
	fmt.Println(len(roll.Live))
	// Output:
	// held by another process: false
	// 1
	// 0
}

// What the leader says of nodes that are unwell, and what it remembers of nodes
// that came by registration. Neither moves a key.
func ExampleOverlay() {
	ctx := context.Background()
	store, cluster := published(ctx)
	leader, err := store.Campaign(ctx, "cache", "host-2")
	check(err)
	defer func() { check(leader.Resign(ctx)) }()
	roster := cluster.(membership.Roster)

	check(roster.SetOverlay(ctx, leader, membership.Overlay{Bad: []string{"b"}}))
	check(roster.Mark(ctx, leader, []membership.Mark{{ID: "b", Addr: "10.0.0.2:11211", State: topology.StateActive, Admitted: true}}))
	state, err := cluster.Load(ctx)
	check(err)
	roll, err := roster.Roll(ctx)
	check(err)
	fmt.Println(state.Overlay.Bad, state.Head.Version(), roll.Marks[0].ID, roll.Marks[0].State)
	// Output: [b] 1.1 b active
}
