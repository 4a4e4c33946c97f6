package membership_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

func withEpochs(w *world) func(*membership.ControllerConfig) {
	return func(c *membership.ControllerConfig) { c.Epochs = w.store }
}

// TestLeaderBumps: a leader under which the store is restored raises the epoch
// by itself, once an hour at most, and goes on publishing.
func TestLeaderBumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		c, stop := w.run(withEpochs(w))
		w.want("1.1", 1)
		restore := w.s.Backup("c")
		w.declare(membership.SetWeight("n00", 5))
		w.declare(membership.SetWeight("n01", 5))
		w.want("1.3", 3)
		restore()
		synctest.Wait()
		head := w.want("2.1", 1).Head
		if got := head.Cause(); got.Kind != membership.CauseWentBack || got.By != "x" || !strings.Contains(got.Why, "1.3@") {
			t.Errorf("cause %+v", got)
		}
		if m, err := w.store.Movement(t.Context(), head.Version()); err != nil || m.Ratio == 0 {
			t.Errorf("movement against what was lost: %v, %v", m.Ratio, err)
		}
		w.declare(membership.SetWeight("n02", 2))
		w.want("2.2", 2)

		restore() // within the hour: the leader waits for an operator, or for its time
		synctest.Wait()
		if got := c.Status().Err; !errors.Is(got, membership.ErrWentBack) || !strings.Contains(got.Error(), "2.2@") {
			t.Errorf("status: %v", got)
		}
		w.declare(membership.SetWeight("n02", 9))
		w.want("1.1", 1)
		time.Sleep(membership.BumpInterval + membership.BumpInterval/12)
		synctest.Wait()
		w.want("3.2", 2)
		if err := c.Status().Err; err != nil {
			t.Errorf("status: %v", err)
		}
		_ = stop()
	})
}

// TestUntrustedEvidence: what a client shows stops publication under any leader,
// and an operator's bump lets it go on.
func TestUntrustedEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		_, stop := w.run(withEpochs(w))
		ref := w.want("1.1", 1).Head.Ref()
		ref.Version.Seq = 7
		if ok, err := w.store.Show(t.Context(), membership.Shown{Ref: ref, By: "client 10.0.0.9"}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		_ = stop()
		c, stop := w.run(withEpochs(w)) // another leader knows it too
		w.declare(membership.SetWeight("n00", 5))
		w.want("1.1", 1)
		if got := c.Status().Err; !errors.Is(got, membership.ErrWentBack) || !strings.Contains(got.Error(), "client 10.0.0.9") {
			t.Errorf("status: %v", got)
		}
		bump, err := w.load().Bump(nil, topology.Cause{By: "alice"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.store.Bump(t.Context(), nil, bump); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.want("2.2", 2)
		if err := c.Status().Err; err != nil {
			t.Errorf("status: %v", err)
		}
		_ = stop()
	})
}

// TestFrozen: edits wait while the cluster is frozen.
func TestFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		c, stop := w.run(nil)
		if _, err := w.store.Freeze(t.Context(), &membership.Freeze{By: "alice", Why: "fair"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := c.Status().Err; err != nil {
			t.Errorf("nothing is to be published: %v", err)
		}
		w.declare(membership.SetWeight("n00", 5))
		w.want("1.1", 1)
		if got := c.Status().Err; !errors.Is(got, membership.ErrFrozen) || !strings.Contains(got.Error(), "by alice: fair") {
			t.Errorf("status: %v", got)
		}
		if _, err := w.store.Freeze(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.want("1.2", 2)
		_ = stop()
	})
}
