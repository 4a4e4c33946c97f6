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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

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
	f(Loader{}, "/nowhere/x.yaml", os.ErrNotExist, "/nowhere/x.yaml")
	f(Loader{}, "/nowhere/x.yaml", ErrFile, "")
	f(Loader{}, write(t, "bad.topology", saved), topology.ErrCorrupt, "save it again")
	f(Loader{}, write(t, "bad.yaml", []byte("cluster: c\nalgorithm: rnig\n")), ErrFile, "bad.yaml:1:1: nodes: missing")
	f(Loader{}, write(t, "c.yaml", clusterfile.Format(other)), ErrCluster, `of cluster "cache"`)
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

// TestCountKeysAgrees: what is counted key by key is the share that the report
// says, within what a sample of that size allows.
func TestCountKeysAgrees(t *testing.T) {
	const n = 50_000
	for _, a := range topology.Algorithms() {
		for _, replicas := range []uint32{1, 2} {
			p := plan(t, topology.Spec{Algorithm: a, Replicas: replicas}, []uint32{1, 1, 2, 1}, []uint32{1, 0, 2, 1, 1})
			got, err := CountKeys(p.From.Table, p.To.Table, numbered(n))
			if err != nil {
				t.Fatal(err)
			}
			ratio := p.Report.Ratio
			if sigma := math.Sqrt(ratio * (1 - ratio) / n); math.Abs(got.Ratio-ratio) > 5*sigma+1e-3*float64(replicas-1) {
				t.Errorf("%s, %d replicas: counted %.5f, report says %.5f (sigma %.5f)", a, replicas, got.Ratio, ratio, sigma)
			}
			if got.Total != n || replicas == 1 && got.Copies != got.Moved || got.Copies < got.Moved {
				t.Errorf("%s, %d replicas: %+v", a, replicas, got)
			}
		}
	}
}

func numbered(n int) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for i := range n {
			if !yield(fmt.Appendf(nil, "user:%d", i), nil) {
				return
			}
		}
	}
}

// TestCountKeysAcrossHashes: a change of the key hash hashes each side its own way.
func TestCountKeysAcrossHashes(t *testing.T) {
	from := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Slots}, 1, 1, 1))
	to := mustNext(t, from, declared(topology.Spec{Algorithm: topology.Slots, KeyHash: topology.CRC16, HashTag: "{}"}, 1, 1, 1))
	got, err := CountKeys(from, to, numbered(10_000))
	if err != nil {
		t.Fatal(err)
	}
	want := KeyCount{Total: 10_000}
	for key := range numbered(10_000) {
		a, _ := from.Owner(string(key))
		b, _ := to.Owner(string(key))
		if a != b {
			want.Moved++
		}
	}
	want.Copies, want.Ratio = want.Moved, float64(want.Moved)/10_000
	if diff := cmp.Diff(want, got); diff != "" || got.Moved < 6000 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountKeysWithoutOwners(t *testing.T) {
	spec := topology.Spec{Algorithm: topology.Ring}
	some := mustNext(t, nil, declared(spec, 1, 1))
	none := mustNext(t, some, declared(spec))
	for _, c := range []struct {
		from, to *placement.Table
		want     KeyCount
	}{
		{some, none, KeyCount{Total: 10}},
		{none, some, KeyCount{Total: 10, Moved: 10, Copies: 10, Ratio: 1}},
	} {
		got, err := CountKeys(c.from, c.to, numbered(10))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestCompare(t *testing.T) {
	p := plan(t, topology.Spec{Algorithm: topology.Ring, VNodes: 40}, []uint32{1, 1, 1, 1}, []uint32{1, 1, 1, 1, 1})
	c, err := Compare(p.From, p.To)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range c.Rows {
		names = append(names, r.Algorithm)
		if r.Movement == nil {
			t.Errorf("%s: refused: %s", r.Algorithm, r.Note)
			continue
		}
		if math.Abs(r.Movement.Minimum-0.2) > 1e-9 || r.PeakBefore < 1 || r.PeakAfter < 1 {
			t.Errorf("%s: %+v, %+v", r.Algorithm, r, r.Movement)
		}
		switch r.Algorithm {
		case "jump", "rendezvous", "maglev", "slots":
			if math.Abs(r.Movement.Excess) > 1e-3 || r.Movement.BetweenUnchanged != 0 {
				t.Errorf("%s moves more than it must: %+v", r.Algorithm, r.Movement)
			}
		case Modulo:
			if math.Abs(r.Movement.Ratio-0.8) > 1e-9 || math.Abs(r.Movement.BetweenUnchanged-0.6) > 1e-9 {
				t.Errorf("modulo 4 to 5: %+v, want 0.8 moved, 0.6 of it between unchanged nodes", r.Movement)
			}
		}
		if r.Planned != (r.Algorithm == "ring") {
			t.Errorf("%s: planned is %t", r.Algorithm, r.Planned)
		}
	}
	if diff := cmp.Diff([]string{"ring", "jump", "rendezvous", "maglev", "slots", "modulo"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p.Report.Summary, *c.Rows[0].Movement); diff != "" {
		t.Errorf("the row of the plan is not the plan (-want +got):\n%s", diff)
	}
}

// TestCompareChangeOfAlgorithm: no row is the plan then, and each compares its
// own algorithm with itself.
func TestCompareChangeOfAlgorithm(t *testing.T) {
	from := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Ring, VNodes: 40}, 1, 1, 1))
	to := mustNext(t, from, declared(topology.Spec{Algorithm: topology.Slots, SlotCount: 4096}, 1, 1, 1, 1))
	c, err := Compare(Side{Name: "a", Table: from}, Side{Name: "b", Table: to})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Rows {
		if r.Planned {
			t.Errorf("%s: planned", r.Algorithm)
		}
		if r.Algorithm != Modulo && (r.Movement.Ratio > 0.35 || r.Movement.Remapped != 0) {
			t.Errorf("%s: %+v", r.Algorithm, r.Movement)
		}
	}
}

// TestCompareRefusedRow: an algorithm that cannot hold the nodes says so.
func TestCompareRefusedRow(t *testing.T) {
	spec := topology.Spec{Algorithm: topology.Rendezvous}
	p := plan(t, spec, []uint32{1, 1}, []uint32{1, 1_000_000})
	c, err := Compare(p.From, p.To)
	if err != nil {
		t.Fatal(err)
	}
	ring := c.Rows[0]
	if ring.Movement != nil || !strings.Contains(ring.Note, "ring points") {
		t.Errorf("got %+v", ring)
	}
	if c.Rows[5].Note == "" || c.Rows[5].PeakAfter < 100_000 {
		t.Errorf("modulo with weights: %+v", c.Rows[5])
	}
}

// TestModulo compares the closed form with counting.
func TestModulo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := func(label string) topology.Declared {
			d := topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: topology.Rendezvous}}
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 1, 10, rapid.ID[int]).Draw(t, label) {
				d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("n%02d", i), Weight: rapid.Uint32Range(1, 2).Draw(t, "weight")})
			}
			return d
		}
		from, to := mustNext(t, nil, gen("before")).Topology(), mustNext(t, nil, gen("after")).Topology()
		got := moduloRow(from, to).Movement
		n, m := from.Len(), to.Len()
		moved, needless := 0, 0
		for x := range n * m {
			a, b := from.Node(x%n), to.Node(x%m)
			if a.ID == b.ID {
				continue
			}
			moved++
			same := func(id string) bool {
				i, j := from.Index(id), to.Index(id)
				return i >= 0 && j >= 0 && from.Node(i).Weight == to.Node(j).Weight
			}
			if same(a.ID) && same(b.ID) {
				needless++
			}
		}
		want := placement.Summary{Ratio: float64(moved) / float64(n*m), BetweenUnchanged: float64(needless) / float64(n*m)}
		if math.Abs(got.Ratio-want.Ratio) > 1e-12 || math.Abs(got.BetweenUnchanged-want.BetweenUnchanged) > 1e-12 {
			t.Fatalf("%d to %d nodes: got %+v, counted %+v", n, m, got, want)
		}
		if got.MinimumRealised > got.Ratio+1e-12 {
			t.Fatalf("ratio %g below the minimum %g of its own shares", got.Ratio, got.MinimumRealised)
		}
	})
}

func TestModuloWithoutOwners(t *testing.T) {
	some := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Ring}, 1, 1))
	none := mustNext(t, some, declared(topology.Spec{Algorithm: topology.Ring}, 0, 0))
	if r := moduloRow(some.Topology(), none.Topology()); r.Movement != nil || !strings.Contains(r.Note, "without owners") {
		t.Errorf("got %+v", r)
	}
}

func TestKeys(t *testing.T) {
	f := func(text string, hexadecimal bool, want []string, wantErr string) {
		t.Helper()
		var got []string
		var err error
		for key, e := range Keys(strings.NewReader(text), hexadecimal) {
			if err = e; e == nil {
				got = append(got, string(key))
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%q: got %v, want %q", text, err, wantErr)
		}
	}
	long := strings.Repeat("x", MaxKey)
	f("", false, nil, "")
	f("a\nb", false, []string{"a", "b"}, "")
	f("a\n\n b \n", false, []string{"a", "", " b "}, "")
	f("\x00\xff\t\n", false, []string{"\x00\xff\t"}, "")
	f(long+"\nb\n", false, []string{long, "b"}, "")
	f("a\n"+long+"x\n", false, []string{"a"}, "line 2: longer than 1048576 bytes")
	f(long+long+"xx", false, nil, "line 1: longer than 1048576 bytes")
	f("a\nb\r\n", false, []string{"a"}, "line 2: ends in a carriage return")
	f("0a\nFF00\n\n", true, []string{"\n", "\xff\x00", ""}, "")
	f("0a\nxy\n", true, []string{"\n"}, "line 2: not hexadecimal")
	f("abc", true, nil, "line 1: not hexadecimal")
	for range Keys(strings.NewReader("a\nb\n"), false) {
		break // must not be called again
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\nb"), false)
	f.Add([]byte("0a\n\nfg\r\n"), true)
	f.Fuzz(func(t *testing.T, b []byte, hexadecimal bool) {
		n := 0
		for key, err := range Keys(bytes.NewReader(b), hexadecimal) {
			if n++; err != nil && key != nil {
				t.Fatalf("both a key and an error")
			}
		}
		if most := bytes.Count(b, []byte("\n")) + 1; n > most {
			t.Fatalf("%d keys of at most %d lines", n, most)
		}
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestKeysReadError(t *testing.T) {
	table := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Ring}, 1, 1))
	_, err := CountKeys(table, table, Keys(failing{}, false))
	if err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("got %v", err)
	}
}
