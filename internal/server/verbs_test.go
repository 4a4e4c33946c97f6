package server_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// TestRollback: a kept version's contents come again as a new version.
func TestRollback(t *testing.T) {
	r, store := withStore(t)
	r.put(declared(3))
	r.node("node-000", api.VerbDrain, api.NodeEdit{})
	r.node("node-001", api.VerbReplace, api.NodeEdit{By: "node-009", Addr: "10.0.0.99:1"})
	res, err := r.api.Rollback(t.Context(), "cache", topology.Version{Epoch: 1, Seq: 1}, api.EditOptions{Why: "it was better"})
	if err != nil || res.Version != (topology.Version{Epoch: 1, Seq: 4}) {
		t.Fatalf("%+v, %v", res, err)
	}
	st, err := store.Open("cache").Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := store.Open("cache").Version(t.Context(), topology.Version{Epoch: 1, Seq: 1})
	if err != nil || first.Mapping() != st.Head.Mapping() || st.Head.Cause().Why != "rollback to 1.1: it was better" {
		t.Errorf("%v; cause %+v", err, st.Head.Cause())
	}
	if _, err := r.api.Rollback(t.Context(), "cache", topology.Version{Epoch: 9, Seq: 9}, api.EditOptions{}); !errors.Is(err, membership.ErrNoVersion) {
		t.Errorf("to what never was: %v", err)
	}
	if _, err := r.api.Rollback(t.Context(), "cache", topology.Version{}, api.EditOptions{}); !errors.Is(err, membership.ErrInvalid) {
		t.Errorf("to nothing: %v", err)
	}
}

// TestRollbackWhy: a rollback has as much room for its reason as any other edit.
func TestRollbackWhy(t *testing.T) {
	r, store := withStore(t)
	r.put(declared(3))
	r.node("node-000", api.VerbDrain, api.NodeEdit{})
	why := strings.Repeat("y", membership.MaxNoteLen)
	to := topology.Version{Epoch: 1, Seq: 1}
	if _, err := r.api.Rollback(t.Context(), "cache", to, api.EditOptions{Why: why + "y"}); !errors.Is(err, membership.ErrInvalid) {
		t.Errorf("a longer one: %v", err)
	}
	if _, err := r.api.Rollback(t.Context(), "cache", to, api.EditOptions{Why: why}); err != nil {
		t.Fatal(err)
	}
	if st, err := store.Open("cache").Load(t.Context()); err != nil || st.Head.Cause().Why != "rollback to 1.1: "+why {
		t.Errorf("%v, cause %+v", err, st.Head.Cause())
	}
}

// TestAddUnderGoZero: a node that is added without a weight gets that of a file.
func TestAddUnderGoZero(t *testing.T) {
	r, store := withStore(t)
	d := declared(2)
	d.Spec = topology.Spec{Algorithm: topology.Compat, Compat: topology.Foreign{Mode: topology.ModeGoZero}}
	r.put(d)
	r.node("more", api.VerbAdd, api.NodeEdit{Addr: "more:1"})
	seven := uint32(7)
	r.node("seven", api.VerbAdd, api.NodeEdit{Addr: "seven:1", Weight: &seven})
	m, err := membership.Register(t.Context(), store.Open("cache").(membership.Registrar), membership.Registration{ID: "agent", Addr: "agent:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		st, err := store.Open("cache").Load(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%v, %+v", err, st.Declared.Nodes)
		}
		if n := st.Declared.Nodes; len(n) == 5 {
			if n[0].Weight != 100 || n[1].Weight != 100 || n[2].Weight != 1 || n[4].Weight != 7 {
				t.Errorf("%+v", n)
			}
			return
		}
	}
}

// TestRollbackTables: where tables are the result of the changes so far, a
// rollback publishes the old ones again: the mapping is what it was, and what
// moves back is what moved forth.
func TestRollbackTables(t *testing.T) {
	for _, algorithm := range []topology.Algorithm{topology.Slots, topology.Maglev, topology.Jump} {
		t.Run(string(algorithm), func(t *testing.T) { testRollbackTables(t, algorithm) })
	}
}

func testRollbackTables(t *testing.T, algorithm topology.Algorithm) {
	r, store := withStore(t)
	d := declared(7)
	d.Spec = topology.Spec{Algorithm: algorithm}
	r.put(d)
	for _, w := range []uint32{3, 2, 5} {
		r.node("node-003", api.VerbWeight, api.NodeEdit{Weight: &w})
	}
	gone := r.node("node-001", api.VerbRemove, api.NodeEdit{})
	back := func(seq uint64) placement.Report {
		t.Helper()
		v := topology.Version{Epoch: 1, Seq: seq}
		res, err := r.api.Rollback(t.Context(), "cache", v, api.EditOptions{})
		if err != nil || res.Movement == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		was, err := store.Open("cache").Version(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		if now, err := store.Open("cache").Load(t.Context()); err != nil || now.Head.Mapping() != was.Mapping() {
			t.Errorf("back to %s: mapping %s, was %s; %v", v, now.Head.Mapping(), was.Mapping(), err)
		}
		return *res.Movement
	}
	if m := back(4); math.Abs(m.Ratio-gone.Movement.Ratio) > 1e-12 {
		t.Errorf("%v moved forth, %v back", gone.Movement.Ratio, m.Ratio)
	}
	back(1)
	back(5)
	// Where spec and nodes are what they were, and only the tables are not.
	r.put(d)
	three, one := uint32(3), uint32(1)
	r.node("node-001", api.VerbRemove, api.NodeEdit{})
	r.node("node-003", api.VerbWeight, api.NodeEdit{Weight: &three})
	r.node("node-001", api.VerbAdd, api.NodeEdit{Addr: d.Nodes[1].Addr, Zone: d.Nodes[1].Zone, Weight: &one})
	r.node("node-003", api.VerbWeight, api.NodeEdit{Weight: &one})
	if m := back(1); m.Ratio == 0 || m.Cause != membership.CauseRestored {
		t.Errorf("nothing moved back, though the tables were others: %+v", m)
	}
	if res, err := r.api.Rollback(t.Context(), "cache", topology.Version{Epoch: 1, Seq: 1}, api.EditOptions{}); err != nil || !res.Published || res.Version != res.From {
		t.Errorf("back to what is there: %+v, %v", res, err)
	}
}

// TestExplain follows one key through a change of its owner.
func TestExplain(t *testing.T) {
	r, _ := withStore(t)
	r.put(declared(3))
	key := []byte("user:1")
	before, err := r.api.Explain(t.Context(), "cache", key, topology.Version{})
	if err != nil || before.Moved != nil || before.Since != before.Version || len(before.Nodes) == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	owner := before.Nodes[0].ID
	r.node(owner, api.VerbDrain, api.NodeEdit{})
	r.put(func() topology.Declared { d := declared(3); d.Nodes = d.Nodes[:3]; return d }()) // back
	r.node(owner, api.VerbDrain, api.NodeEdit{})
	after, err := r.api.Explain(t.Context(), "cache", key, topology.Version{})
	if err != nil || after.Moved == nil || after.Moved.From != owner || after.Moved.To != after.Nodes[0].ID || after.Moved.Version.Seq != 4 || after.Since.Seq != 4 {
		t.Fatalf("%+v, %v", after, err)
	}
	at, err := r.api.Explain(t.Context(), "cache", key, topology.Version{Epoch: 1, Seq: 1})
	if err != nil || at.Nodes[0].ID != owner || at.Version.Seq != 1 || at.Looked != 1 {
		t.Errorf("at 1.1: %+v, %v", at, err)
	}
	if _, err := r.api.Explain(t.Context(), "cache", key, topology.Version{Epoch: 7, Seq: 1}); !errors.Is(err, membership.ErrNoVersion) {
		t.Errorf("at 7.1: %v", err)
	}
}

// TestDeleteCluster: only with its name twice and its id.
func TestDeleteCluster(t *testing.T) {
	r, _ := withStore(t)
	id := r.put(declared(3)).ClusterID
	if err := r.api.DeleteCluster(t.Context(), "cache", "cach", id); !errors.Is(err, api.ErrDeclined) {
		t.Errorf("without its name: %v", err)
	}
	if err := r.api.DeleteCluster(t.Context(), "cache", "cache", topology.ClusterID{9}); !errors.Is(err, membership.ErrConflict) {
		t.Errorf("another id: %v", err)
	}
	if resp, body := r.call("DELETE", "/v1/clusters/cache?confirm=cache", ""); resp.status != http.StatusBadRequest {
		t.Errorf("no id: %d %s", resp.status, body)
	}
	if err := r.api.DeleteCluster(t.Context(), "cache", "cache", id); err != nil {
		t.Fatal(err)
	}
	r.eventually("the cluster is gone", func() bool {
		_, _, err := r.api.Topology(t.Context(), "cache")
		return errors.Is(err, membership.ErrNoCluster)
	})
	if again := r.put(declared(2)); again.ClusterID == id || again.Version.Seq != 1 {
		t.Errorf("made anew: %+v", again)
	}
}

// TestForgetNode: only what owns nothing.
func TestForgetNode(t *testing.T) {
	r, _ := withStore(t)
	r.put(declared(3))
	forget := func(e api.NodeEdit) error {
		_, err := r.api.EditNode(t.Context(), "cache", "node-000", api.VerbForget, e, api.EditOptions{})
		return err
	}
	if err := forget(api.NodeEdit{}); !errors.Is(err, membership.ErrInvalid) {
		t.Errorf("an owner: %v", err)
	}
	r.node("node-000", api.VerbDrain, api.NodeEdit{})
	if err := forget(api.NodeEdit{By: "x"}); !errors.Is(err, membership.ErrInvalid) {
		t.Errorf("with a field of another verb: %v", err)
	}
	if err := forget(api.NodeEdit{}); err != nil {
		t.Error(err)
	}
}
