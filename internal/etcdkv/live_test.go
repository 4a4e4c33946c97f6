package etcdkv

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/topology"
)

func presence() Live {
	return Live{ID: "n1", Cluster: topology.ClusterID{1}, Addr: "10.0.0.1:1", Zone: "z", Weight: new(uint32(0)), Owner: "000102030405060708090a0b0c0d0e0f",
		Identity: "me", Incarnation: 3, Drain: true, Health: "bad", Reason: "no answer"}
}

func TestLiveReadsBack(t *testing.T) {
	check(t, presence(), func(b []byte) (Live, error) { return DecodeLive(topology.ClusterID{1}, "n1", b) })
	check(t, Member{ID: "n1", Owner: "o", Incarnation: 2, Addr: "a", Zone: "z", Weight: new(uint32(7)), State: topology.StateDown, Next: topology.StateLeft, Admitted: true},
		func(b []byte) (Member, error) { return DecodeMember("n1", b) })
}

func TestLiveRefused(t *testing.T) {
	f := func(what string, change func(*Live)) {
		t.Helper()
		l := presence()
		change(&l)
		b, err := EncodeRecord(l)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeLive(topology.ClusterID{1}, "n1", b)
		if diff := cmp.Diff(Live{}, got); !errors.Is(err, ErrCorrupt) || diff != "" {
			t.Errorf("%s: %v, %+v", what, err, got)
		}
	}
	f("another node", func(l *Live) { l.ID = "n2" })
	f("another cluster", func(l *Live) { l.Cluster[0]++ })
	f("no owner", func(l *Live) { l.Owner = "" })
	f("a short owner", func(l *Live) { l.Owner = "00" })
	f("an owner that is no number", func(l *Live) { l.Owner = "x" + l.Owner[1:] })
	f("no incarnation", func(l *Live) { l.Incarnation = 0 })
	for _, v := range []string{"", "null", "[]", `{"weight":-1}`, `{"weight":4294967296}`} {
		if _, err := DecodeLive(topology.ClusterID{1}, "n1", []byte(v)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", v, err)
		}
	}
	for _, v := range []string{"", "{}", `{"id":"n2"}`, `{"id":"n1","state":"asleep"}`} {
		if m, err := DecodeMember("n1", []byte(v)); !errors.Is(err, ErrCorrupt) || m != (Member{}) {
			t.Errorf("%q: %+v %v", v, m, err)
		}
	}
}

func FuzzLive(f *testing.F) {
	b, err := EncodeRecord(presence())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeLive(topology.ClusterID{1}, "n1", b)
		if err != nil {
			return
		}
		check(t, l, func(b []byte) (Live, error) { return DecodeLive(topology.ClusterID{1}, "n1", b) })
	})
}
