package httpsource_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// sendDelta makes open watches send what leads from one version to another, with
// its encoding changed by damage, which may be nil.
func (f *fake) sendDelta(t *testing.T, from, to *topology.Topology, damage func([]byte) []byte) {
	t.Helper()
	d, err := topology.Diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	encoded := d.Encode()
	if damage != nil {
		encoded = damage(slices.Clone(encoded))
	}
	f.lines <- encode(api.Message{Type: api.MessageDelta, ClusterID: to.ClusterID(), Version: to.Version(), Digest: to.Digest(), Base: from.Digest(), Encoded: encoded})
}

// keep makes the fake answer for these versions as a whole.
func (f *fake) keep(versions ...*topology.Topology) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whole = make(map[string]*topology.Topology)
	for _, t := range versions {
		f.whole[t.Version().String()] = t
	}
}

// TestDeltas: deltas are followed from version to version and across streams;
// their tables need no request.
func TestDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, l := newNetwork(), newFake(), newLine(t)
		n.serve(t, "a:1", f.handler())
		c := client(t, n, nil, "a:1")
		spec := topology.Spec{Algorithm: topology.Slots, SlotCount: 512}
		versions := []*topology.Topology{l.publish(spec, 8)}
		f.send(versions[0])
		await(t, c, versions[0])
		for i := range 6 {
			last := versions[i]
			next := l.publish(spec, 9+i%3)
			if i == 3 {
				f.lines <- hangUp
			}
			f.sendDelta(t, last, next, nil)
			await(t, c, next)
			versions = append(versions, next)
		}
		want := []string{"/v1/clusters/cache/watch?deltas=all", "/v1/clusters/cache/objects/" + versions[0].Refs()[0].Digest.String(),
			"/v1/clusters/cache/watch?after=1.4&deltas=all&digest=" + versions[3].Digest().String() + "&id=" + l.id.String()}
		if diff := cmp.Diff(want, f.requests()); diff != "" {
			t.Fatal(diff)
		}
		if !c.Topology().Complete() {
			t.Fatal("tables are missing")
		}
	})
}

// TestDeltaUnusable: a delta that cannot be used, or leads elsewhere, costs one
// request for the whole version, which is taken only if it is the one that the
// watch named.
func TestDeltaUnusable(t *testing.T) {
	spec := topology.Spec{Algorithm: topology.Maglev, TableSize: 251}
	for name, damage := range map[string]func([]byte) []byte{
		"not a delta":      func([]byte) []byte { return []byte("SHT\x01") },
		"of later release": func(b []byte) []byte { return append(b, 99, 0) },
		"cut short":        func(b []byte) []byte { return b[:len(b)-3] },
		"another target":   func(b []byte) []byte { b[30]++; return b },
		"leads elsewhere":  func(b []byte) []byte { b[slices.Index(b, 'n')+8] = '9'; return b },
	} {
		synctest.Test(t, func(t *testing.T) {
			n, f, l := newNetwork(), newFake(), newLine(t)
			n.serve(t, "a:1", f.handler())
			c := client(t, n, nil, "a:1")
			v1, v2 := l.publish(spec, 5), l.publish(spec, 6)
			f.send(v1)
			await(t, c, v1)
			f.keep(v2)
			f.sendDelta(t, v1, v2, damage)
			await(t, c, v2)
			want := []string{"/v1/clusters/cache/topology?version=1.2"}
			if diff := cmp.Diff(want, f.requests()[2:]); diff != "" {
				t.Fatalf("%s: %s", name, diff)
			}
			v3 := l.publish(spec, 7) // the next one is a delta again
			f.sendDelta(t, v2, v3, nil)
			await(t, c, v3)
			if got := f.requests(); len(got) != 3 || c.State().Refused != 0 {
				t.Fatalf("%s: %v, %+v", name, got, c.State())
			}
		})
	}
}

// TestDeltaOfUnknownBase: so does a delta from a version that did not come here.
func TestDeltaOfUnknownBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, l := newNetwork(), newFake(), newLine(t)
		n.serve(t, "a:1", f.handler())
		c := client(t, n, nil, "a:1")
		v1, v2, v3 := l.ring(5), l.ring(6), l.ring(7)
		fork := l.copy()
		v4, v5 := l.ring(8), l.ring(9)
		fork.ring(2)
		fork5 := fork.ring(3) // which the client could not tell from v5
		f.send(v1)
		await(t, c, v1)
		f.keep(v3)
		f.sendDelta(t, v2, v3, nil)
		await(t, c, v3)

		// The whole version is not to be had, or is another one: nothing is
		// taken, and the next stream asks for whole versions.
		for _, kept := range [][]*topology.Topology{nil, {fork5}} {
			f.keep(kept...)
			f.sendDelta(t, v4, v5, nil)
			time.Sleep(3 * time.Second)
			if c.Topology().Ref() != v3.Ref() || c.State().Problem == nil {
				t.Fatalf("%+v", c.State())
			}
			requests := f.requests()
			if last := requests[len(requests)-1]; !strings.Contains(last, "deltas=next") {
				t.Fatalf("asked %s", last)
			}
		}
		f.send(v5)
		await(t, c, v5)
	})
}

// TestDeltaNeverBack: a delta proves nothing; what it leads to is judged as any
// other version.
func TestDeltaNeverBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, l := newNetwork(), newFake(), newLine(t)
		n.serve(t, "a:1", f.handler())
		c := client(t, n, nil, "a:1")
		v1 := l.ring(3)
		fork := l.copy()
		v2, forked := l.ring(4), fork.ring(5)
		f.send(v1)
		await(t, c, v1)
		f.sendDelta(t, v1, v2, nil)
		await(t, c, v2)
		for _, bad := range []struct {
			to   *topology.Topology
			want error
		}{{v1, sdk.ErrOlder}, {forked, sdk.ErrForked}} {
			f.keep(bad.to)
			f.sendDelta(t, v2, bad.to, nil)
			time.Sleep(3 * time.Second)
			if c.Topology().Ref() != v2.Ref() || !errors.Is(c.State().Problem, bad.want) {
				t.Fatalf("%+v", c.State())
			}
			if got := f.requests(); !strings.Contains(got[len(got)-1], "deltas=next") {
				t.Fatalf("the base is not what the client holds, but asked %s", got[len(got)-1])
			}
		}
	})
}

// TestDeltaAfterSnapshot: of a version from a snapshot file only the name is
// known here, so the first message is asked for whole, and deltas follow.
func TestDeltaAfterSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir() + "/s"
		n, f, l := newNetwork(), newFake(), newLine(t)
		n.serve(t, "a:1", f.handler())
		c := client(t, n, []sdk.Option{sdk.WithSnapshot(path)}, "a:1")
		v1, v2, v3 := l.ring(5), l.ring(6), l.ring(7)
		f.send(v1)
		await(t, c, v1)
		c.Close()
		c = client(t, n, []sdk.Option{sdk.WithSnapshot(path)}, "a:1")
		await(t, c, v1)
		f.send(v2)
		await(t, c, v2)
		f.sendDelta(t, v2, v3, nil)
		await(t, c, v3)
		got := f.requests()
		if len(got) != 2 || !strings.Contains(got[1], "after=1.1&deltas=next") {
			t.Fatal(got)
		}
	})
}
