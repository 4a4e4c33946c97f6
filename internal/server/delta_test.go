package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/topology"
)

// firstDelta returns the first messages of a watch that takes deltas.
func (r *running) firstDelta(n int, after topology.Ref, deltas api.Deltas) []api.Message {
	r.t.Helper()
	var got []api.Message
	err := r.api.WatchDeltas(r.t.Context(), "cache", after, deltas, time.Minute, func(m api.Message) error {
		m.Encoded = slices.Clone(m.Encoded)
		if got = append(got, m); len(got) == n {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		r.t.Fatal(err)
	}
	return got
}

// size returns the message's length on the wire, with the chunk around it.
func size(t *testing.T, m api.Message) int {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return len(b) + len("\n") + len("12345\r\n\r\n")
}

// TestDeltaSize: one node that is added to 1,000 costs a client less than 2 KB.
func TestDeltaSize(t *testing.T) {
	for _, spec := range []topology.Spec{{Algorithm: topology.Ring}, {Algorithm: topology.Rendezvous}, {Algorithm: topology.Slots}} {
		r, store := withStore(t)
		d := declared(1000)
		d.Spec = spec
		r.put(d)
		st, err := store.Open("cache").Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		base := st.Head
		r.node("node-500-b", api.VerbAdd, api.NodeEdit{Addr: "10.9.9.9:11211", Zone: "zone-a"})
		m := r.firstDelta(1, base.Ref(), api.DeltasAll)[0]
		whole := r.firstDelta(1, base.Ref(), api.DeltasNone)[0]
		bytes := size(t, m)
		fmt.Printf(`{"bench":"delta","algorithm":%q,"nodes":1000,"added":1,"wire_bytes":%d,"full_wire_bytes":%d}`+"\n", spec.Algorithm, bytes, size(t, whole))
		if m.Type != api.MessageDelta || bytes >= 2000 {
			t.Errorf("%s: a %s message of %d bytes", spec.Algorithm, m.Type, bytes)
		}
		delta, err := m.DecodeDelta()
		if err != nil {
			t.Fatal(err)
		}
		got, tables, err := delta.Apply(base)
		if err != nil || len(tables) != len(got.Refs()) || got.Digest() != whole.Digest {
			t.Errorf("%s: %d tables, %v", spec.Algorithm, len(tables), err)
		}
	}
}

// TestFarBehind: a client that is 40 versions behind gets one message, a delta
// while the server has what it holds.
func TestFarBehind(t *testing.T) {
	l := newLine(t)
	var all []*topology.Topology
	for i := range 41 {
		all = append(all, l.next(20+i%2))
	}
	store := newFakeStore()
	store.show(all[0])
	r := run(t, server.Config{Directory: store, Heartbeat: time.Hour})
	if got := r.firstDelta(1, topology.Ref{}, api.DeltasAll); got[0].Type != api.MessageFull {
		t.Fatalf("holding nothing: %s", got[0].Type)
	}
	store.show(all[40], all...)
	for r.firstDelta(1, topology.Ref{}, api.DeltasNone)[0].Version != all[40].Version() {
		time.Sleep(time.Millisecond)
	}
	f := func(name string, held *topology.Topology, deltas api.Deltas, want api.MessageType) {
		t.Helper()
		m := r.firstDelta(1, held.Ref(), deltas)[0]
		if m.Type != want || m.Version != all[40].Version() {
			t.Errorf("%s: %s to %s", name, m.Type, m.Version)
		}
		if m.Type == api.MessageDelta {
			d, err := m.DecodeDelta()
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := d.Apply(held); err != nil || !got.Equal(all[40]) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	f("seen by the server", all[0], api.DeltasAll, api.MessageDelta)
	f("that the client only knows by name", all[0], api.DeltasNext, api.MessageFull)
	f("of an earlier client", all[0], api.DeltasNone, api.MessageFull)
	f("of a later client", all[0], "some", api.MessageFull)
	f("never seen and not kept", all[20], api.DeltasAll, api.MessageFull)
}

// TestDeltaFromStore: a server that was just started makes deltas from the
// versions that the store keeps.
func TestDeltaFromStore(t *testing.T) {
	store := memstore.New()
	first := run(t, server.Config{Directory: store, Elector: store})
	first.put(declared(50))
	st, err := store.Open("cache").Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first.node("more", api.VerbAdd, api.NodeEdit{})
	second := run(t, server.Config{Directory: store})
	if m := second.firstDelta(1, st.Head.Ref(), api.DeltasAll)[0]; m.Type != api.MessageDelta {
		t.Fatalf("a %s message", m.Type)
	}
}

// TestDeltasToClients: clients follow by deltas alone through all algorithms and
// kinds of edits, and end with exactly what is published.
func TestDeltasToClients(t *testing.T) {
	for _, algorithm := range topology.Algorithms() {
		r, store := withStore(t)
		d := declared(30)
		d.Spec = topology.Spec{Algorithm: algorithm}
		c := follow(t, nil, r.addr)
		reaches(t, c, r.put(d).Version)
		var last topology.Version
		weight := uint32(3)
		for i := range 5 {
			last = r.node(fmt.Sprint("more-", i), api.VerbAdd, api.NodeEdit{Addr: fmt.Sprint("10.1.0.", i, ":1")}).Version
			reaches(t, c, last)
		}
		reaches(t, c, r.node("more-3", api.VerbWeight, api.NodeEdit{Weight: &weight}).Version)
		reaches(t, c, r.node("node-000", api.VerbRemove, api.NodeEdit{}).Version)
		st, err := store.Open("cache").Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !c.Topology().Equal(st.Head) || !c.Topology().Complete() {
			t.Errorf("%s: client has %v, the store %v", algorithm, c.Topology().Ref(), st.Head.Ref())
		}
		// The client may have the last one before the server has counted it.
		r.settles(`shardd_watch_messages_total{type="delta"} `, "7")
		r.settles(`shardd_watch_messages_total{type="full"} `, "1")
	}
}
