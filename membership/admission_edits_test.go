package membership_test

import (
	"context"
	"testing"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// busyStore is a store in which an operator's edit of another node comes before
// every edit of admission.
type busyStore struct {
	membership.Store
	edits uint32
}

func (b *busyStore) Declare(ctx context.Context, e membership.Edit) (membership.State, error) {
	if e.By == "admission" {
		b.edits++
		weight := b.edits + 1
		_, err := b.Store.Declare(ctx, membership.Edit{By: "operator", Apply: func(d topology.Declared) (topology.Declared, error) {
			d.Nodes[0].Weight = weight
			return d, nil
		}})
		if err != nil {
			return membership.State{}, err
		}
	}
	return b.Store.Declare(ctx, e)
}

// TestAdmissionAmongEdits: edits of other nodes, however many, do not hold
// admission up: neither a node that joins nor one whose lease is lost.
func TestAdmissionAmongEdits(t *testing.T) {
	busy := &busyStore{}
	change := func(c *membership.ControllerConfig) {
		busy.Store = c.Store
		c.Store = busy
	}
	admission(t, declared(1), change, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "x", Addr: "x:1"})
		time.Sleep(2 * time.Second)
		f.wantState("after joining", "x", topology.StateActive)
		f.kill(m, "x")
		time.Sleep(5*time.Second + 30*time.Second + time.Second)
		f.wantState("after its lease and the settling time", "x", topology.StateLeft)
	})
}
