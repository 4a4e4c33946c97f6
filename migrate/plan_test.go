package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// declared is a cluster of nodes a, b, c, ... of these weights.
func declared(spec topology.Spec, weights ...uint32) topology.Declared {
	d := topology.Declared{Cluster: "cache", Spec: spec.Normal()}
	for i, w := range weights {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("cache-%02d", i), Weight: w})
	}
	return d
}

func mustNext(t interface{ Fatal(...any) }, from *placement.Table, d topology.Declared) *placement.Table {
	table, err := Next(from, d)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// files writes cluster files and saved topologies into a directory.
func write(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type published map[topology.Version]*topology.Topology

func (p published) Topology(_ context.Context, v topology.Version) (*topology.Topology, error) {
	if t := p[v]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("no version %s: %w", v, placement.ErrNoNodes) // any sentinel shows
}

func TestLoad(t *testing.T) {
	spec := topology.Spec{Algorithm: topology.Slots, SlotCount: 64}
	first := mustNext(t, nil, declared(spec, 1, 1, 1))
	second := mustNext(t, first, declared(spec, 1, 0, 1))
	saved, err := second.Topology().MarshalSaved()
	if err != nil {
		t.Fatal(err)
	}
	l := Loader{Versions: published{{}: second.Topology(), {Epoch: 1, Seq: 1}: first.Topology()}}
	f := func(ref string, want *placement.Table, isPublished bool, name string) {
		t.Helper()
		got, err := l.Source(t.Context(), ref)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			return
		}
		if got.Table.Digest() != want.Digest() || got.Published != isPublished || got.String() != name || got.Name != ref {
			t.Errorf("%s: got %+v called %s, mapping %s, want %s", ref, got, got, got.Table.Digest(), want.Digest())
		}
	}
	f("current", second, true, "1.2")
	f("1.1", first, true, "1.1")
	f(write(t, "x", saved), second, true, "1.2")
	file := write(t, "cluster.yaml", clusterfile.Format(declared(spec, 1, 1, 1)))
	f(file, first, false, file)
}

// TestTargetIsUpdate: a cluster file as the target is the update of the source,
// not its own first publication, which under slots would move far more.
func TestTargetIsUpdate(t *testing.T) {
	for _, a := range []topology.Algorithm{topology.Slots, topology.Maglev, topology.Jump} {
		spec := topology.Spec{Algorithm: a}
		from := Side{Name: "current", Published: true, Table: mustNext(t, mustNext(t, nil, declared(spec, 1, 1, 1, 1)), declared(spec, 1, 0, 1, 1))}
		want := declared(spec, 1, 0, 1, 1, 1)
		to, err := Loader{}.Target(t.Context(), from, write(t, "b.yaml", clusterfile.Format(want)))
		if err != nil {
			t.Fatal(err)
		}
		if to.Table.Digest() != mustNext(t, from.Table, want).Digest() {
			t.Errorf("%s: the target is not the update of the source", a)
		}
		if to.Table.Topology().ClusterID() != from.Table.Topology().ClusterID() || to.Table.Topology().Version().Seq != 3 {
			t.Errorf("%s: the target does not continue the source: %s", a, to.Table.Topology().Ref())
		}
		plan, err := New(from, to, 0)
		if err != nil {
			t.Fatal(err)
		}
		if m := plan.Report.Summary; math.Abs(m.Excess) > 1e-4 || m.BetweenUnchanged != 0 || plan.Report.Cause != placement.CauseAdded {
			t.Errorf("%s: %+v, cause %s", a, m, plan.Report.Cause)
		}
		if own := mustNext(t, nil, want); a != topology.Jump && own.Digest() == to.Table.Digest() {
			t.Errorf("%s: update and first publication are the same, so this test shows nothing", a)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	good := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Ring}, 1, 1))
	saved, err := good.Topology().MarshalSaved()
	if err != nil {
		t.Fatal(err)
	}
	saved[len(saved)/2] ^= 1
	other := declared(topology.Spec{Algorithm: topology.Ring}, 1)
	other.Cluster = "sessions"
	thin := declared(topology.Spec{Algorithm: topology.Ring, VNodes: 1, KeyHash: topology.CRC16}, 1, 1, 1, 1, 1, 1, 1, 1, 1_000_000)
	from := Side{Name: "current", Published: true, Table: good}
	f := func(l Loader, ref string, sentinel error, want string) {
		t.Helper()
		side, err := l.Target(t.Context(), from, ref)
		if !errors.Is(err, sentinel) || err == nil || !strings.Contains(err.Error(), want) || side.Table != nil {
			t.Errorf("%s: got %v, want %v saying %q", ref, err, sentinel, want)
		}
	}
	f(Loader{}, "current", ErrNoServer, "name a server")
	f(Loader{}, "1.7", ErrNoServer, `"1.7" is a published version`)
	f(Loader{Versions: published{}}, "1.7", placement.ErrNoNodes, "no version 1.7")
	f(Loader{Versions: published{}}, "0.0", ErrFile, "version 0.0: there is none")
	f(Loader{}, "/nowhere/x.yaml", os.ErrNotExist, "/nowhere/x.yaml")
	f(Loader{}, "/nowhere/x.yaml", ErrFile, "")
	f(Loader{}, write(t, "bad.topology", saved), topology.ErrCorrupt, "save it again")
	f(Loader{}, write(t, "bad.yaml", []byte("cluster: c\nalgorithm: rnig\n")), ErrFile, "bad.yaml:1:1: nodes: missing")
	f(Loader{}, write(t, "c.yaml", clusterfile.Format(other)), ErrCluster, `write cluster: cache in a copy of `)
	f(Loader{}, write(t, "thin.yaml", clusterfile.Format(thin)), ErrFile, "would own nothing; the key hash has only 65,536 values")
	f(Loader{}, write(t, "thin.yaml", clusterfile.Format(thin)), ErrFile, "thin.yaml:1")
	f(Loader{ReadFile: func(string) ([]byte, error) { return nil, os.ErrPermission }}, "x", os.ErrPermission, "")
}

func plan(t *testing.T, spec topology.Spec, before, after []uint32) *Plan {
	t.Helper()
	from := mustNext(t, nil, declared(spec, before...))
	p, err := New(Side{Name: "a.yaml", Table: from}, Side{Name: "b.yaml", Table: mustNext(t, from, declared(spec, after...))}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlanJSON: the documented field names, all of them and at their places.
func TestPlanJSON(t *testing.T) {
	p := plan(t, topology.Spec{Algorithm: topology.Slots, SlotCount: 64}, []uint32{1, 1, 1}, []uint32{1, 1, 1, 1})
	p.Keys, p.BytesPerKey = &KeyCount{Total: 10, Moved: 3, Copies: 3, Ratio: 0.3}, 100
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "from": "a.yaml",
  "to": "b.yaml",
  "movement": {
    "ratio": 0.25,
    "minimum": 0.25,
    "minimum_realised": 0.25,
    "excess": 0,
    "between_unchanged": 0,
    "remapped": 0,
    "method": "table",
    "interval": null
  },
`
	if !strings.HasPrefix(string(b), want) {
		t.Errorf("got %s", b)
	}
	var got struct {
		Nodes []placement.NodeMovement
		Flows []placement.Flow
		Keys  KeyCount
		Bytes uint64
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Nodes) != 4 || len(got.Flows) != 3 || got.Keys != *p.Keys || got.Bytes != 300 {
		t.Errorf("got %+v", got)
	}
	p.Keys = nil
	if b, _ = json.Marshal(p); bytes.Contains(b, []byte(`"keys"`)) || bytes.Contains(b, []byte(`"bytes"`)) {
		t.Errorf("keys or bytes though none were counted: %s", b)
	}
}

// TestBytesAreBounded: a product that does not fit is the largest number.
func TestBytesAreBounded(t *testing.T) {
	p := Plan{Keys: &KeyCount{Copies: 1 << 30}, BytesPerKey: 1 << 40}
	if n, ok := p.Bytes(); !ok || n != math.MaxUint64 {
		t.Errorf("%d %v", n, ok)
	}
}
