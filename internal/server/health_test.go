package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// TestHealthReachesClients: what a node says of its health reaches the clients of
// every server, moves no key, and is gone when the node is.
func TestHealthReachesClients(t *testing.T) {
	s := memstore.New()
	admission := membership.AdmissionConfig{Join: -1, Down: time.Minute, Settle: time.Minute}
	r := run(t, server.Config{Directory: s, Elector: s, Admission: admission})
	other := run(t, server.Config{Directory: s})
	made := r.put(declared(4))
	clients := []*sdk.Client{follow(t, nil, r.addr), follow(t, nil, other.addr)}
	m, err := membership.Register(t.Context(), s.Open("cache").(membership.Registrar), membership.Registration{ID: made.Cluster + "-x", Addr: "x:1"})
	if err != nil {
		t.Fatal(err)
	}
	around := func(when string, want ...string) {
		t.Helper()
		for _, c := range clients {
			for deadline := time.Now().Add(15 * time.Second); !slices.Equal(c.Overlay().Around, want); time.Sleep(2 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%s: requests go round %v, want %v (%+v)", when, c.Overlay().Around, want, c.Overlay())
				}
			}
		}
	}
	for _, c := range clients {
		until(t, c, "the node owns keys", func(st sdk.State) bool {
			held := c.Topology()
			return held != nil && held.Index("cache-x") >= 0 && held.Node(held.Index("cache-x")).OwnerWeight() > 0
		})
	}
	digest := clients[0].Topology().Mapping()
	if err := m.SetHealth(membership.HealthBad, "no answer"); err != nil {
		t.Fatal(err)
	}
	around("bad", "cache-x")
	if _, body := r.call("GET", "/v1/clusters/cache/health", ""); !strings.Contains(body, `"cache-x"`) || !strings.Contains(body, `"known":true`) {
		t.Errorf("GET health: %s", body)
	}
	late := follow(t, nil, other.addr)
	clients = append(clients, late)
	around("a client that comes later", "cache-x")
	if got := clients[0].Topology().Mapping(); got != digest {
		t.Errorf("health moved keys: mapping %s became %s", digest, got)
	}
	if err := m.SetHealth(membership.HealthOK, ""); err != nil {
		t.Fatal(err)
	}
	around("well again")
	if err := m.SetHealth(membership.HealthBad, ""); err != nil {
		t.Fatal(err)
	}
	around("bad again", "cache-x")
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	around("gone")
}

// TestHealthExpires: what nobody says any more is not renewed by heartbeats, be it
// that the leader is gone or that the store is out of reach; what is said anew
// counts again.
func TestHealthExpires(t *testing.T) {
	d := topology.Draft{Cluster: "cache", ID: topology.NewClusterID(), History: 1, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: declared(4).Nodes}
	table, err := placement.Update(nil, d)
	if err != nil {
		t.Fatal(err)
	}
	s := newFakeStore()
	say := func(bad ...string) {
		s.mu.Lock()
		if s.st.Overlay = nil; len(bad) > 0 {
			s.st.Overlay = &membership.Overlay{Bad: bad}
		}
		s.mu.Unlock()
		s.show(table.Topology())
	}
	say("node-001")
	r := run(t, server.Config{Directory: s, Heartbeat: 20 * time.Millisecond, StoreTimeout: 100 * time.Millisecond})
	c := follow(t, []sdk.Option{sdk.WithHealthExpiry(400 * time.Millisecond)}, r.addr)
	around := func(when string, want ...string) {
		t.Helper()
		for deadline := time.Now().Add(15 * time.Second); !slices.Equal(c.Overlay().Around, want); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: requests go round %v, want %v (%+v)", when, c.Overlay().Around, want, c.Overlay())
			}
		}
	}
	around("bad", "node-001")
	time.Sleep(600 * time.Millisecond) // renewed
	around("bad still", "node-001")
	say()
	around("nobody says so")
	say("node-001")
	around("said again", "node-001")
	s.fail(membership.ErrUnreachable)
	around("the store is away")
	if _, body := r.call("GET", "/v1/clusters/cache/health", ""); !strings.Contains(body, `"known":false`) {
		t.Errorf("GET health: %s", body)
	}
	s.fail(nil)
	around("the store is back", "node-001")
}

// TestMembersHeld: members that are lost together are held as down, which readyz
// and a metric tell, until they are back.
func TestMembersHeld(t *testing.T) {
	s := memstore.New()
	r := run(t, server.Config{Directory: s, Elector: s, Admission: membership.AdmissionConfig{Join: -1, Down: -1, Settle: 2 * time.Second}})
	r.put(declared(2))
	for _, id := range []string{"m1", "m2", "m3"} {
		m, err := membership.Register(t.Context(), s.Open("cache").(membership.Registrar), membership.Registration{ID: id, Addr: id + ":1", TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
	}
	owners := func() (n int) {
		st, err := s.Open("cache").Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range st.Head.Len() {
			if st.Head.Node(i).OwnerWeight() > 0 {
				n++
			}
		}
		return n
	}
	wait := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not within 20 s: %s", what)
			}
		}
	}
	held := func() string { return r.metric(`shardd_cluster_members_held{cluster="cache"} `) }
	wait("all own keys", func() bool { return owners() == 5 && held() == "0" })
	s.Away(true)
	wait("the members are held", func() bool { return held() == "3" })
	if resp, body := r.call("GET", "/readyz", ""); resp.status != 200 || !strings.Contains(body, "3 members have lost their leases together") {
		t.Errorf("readyz: %d %s", resp.status, body)
	}
	if owners() != 5 {
		t.Errorf("%d nodes own keys", owners())
	}
	s.Away(false)
	wait("they are back", func() bool { return held() == "0" })
}
