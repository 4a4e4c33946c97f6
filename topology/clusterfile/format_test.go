package clusterfile

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/topology"
)

func genDeclared(t *rapid.T) topology.Declared {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "z1", "true", "null", "~", "1", "1.5", "0x1", "-", "a: b", "#x", "a #b", "'", `"`, `\`, "{", "[", "&a", "*a", "!a", "|", ">", "%", "@", "`", " x", "x ", "é", "日本", "😀", "\u2028", "\u0085", "\ufeff", "a\u00a0b", "<&>", "0o7", "1e3", "yes", "=", "<<", ".inf"}),
		rapid.StringN(0, 20, 100),
	).Filter(func(s string) bool {
		return topology.ValidateNodes(topology.Spec{}, []topology.Node{{ID: "a", Zone: s}}) == nil
	})
	id := rapid.OneOf(
		rapid.SampledFrom([]string{"1", "true", "null", "~", "-", "a:b", "#", "{}", "[x]", "'", `"`, `\`, "1.5", "0x1", "*a", "&a", "!a", "|", ">", "%", "@", "=", "<<", "?"}),
		rapid.StringMatching(`[!-~]{1,12}`),
	).Filter(func(s string) bool { return topology.ValidateNodeID(s) == nil })
	d := topology.Declared{
		Cluster: rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9._-]{0,8}`).Draw(t, "cluster"),
		Spec: topology.Spec{
			Algorithm: rapid.SampledFrom(topology.Algorithms()).Draw(t, "algorithm"),
			KeyHash:   rapid.SampledFrom([]topology.KeyHash{topology.XXH64, topology.CRC16}).Draw(t, "hash"),
			HashTag:   rapid.SampledFrom([]string{"", "{}", "\"\"", "\\ ", "''", "##"}).Draw(t, "tag"),
			Replicas:  rapid.Uint32Range(1, 16).Draw(t, "replicas"),
			ZoneAware: rapid.Bool().Draw(t, "zone aware"),
		},
	}
	if rapid.Bool().Draw(t, "bounded") {
		d.Spec.BoundedLoad = rapid.Float64Range(1, 1000).Draw(t, "load")
	}
	for _, name := range rapid.SliceOfNDistinct(id, 1, 6, rapid.ID[string]).Draw(t, "ids") {
		d.Nodes = append(d.Nodes, topology.Node{ID: name, Addr: text.Draw(t, "addr"), Zone: text.Draw(t, "zone"), Label: text.Draw(t, "label"),
			Weight: rapid.Uint32Range(0, 9).Draw(t, "weight"), State: topology.State(rapid.IntRange(0, 4).Draw(t, "state"))})
	}
	d.Nodes[0].Weight = 1
	d.Spec = d.Spec.Normal()
	return d
}

// TestFormatRoundTrip: what Format writes, Parse reads; so it does JSON.
func TestFormatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genDeclared(t)
		asJSON, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range [][]byte{Format(want), asJSON} {
			got, err := Parse("", b)
			if err != nil {
				t.Fatalf("%v in:\n%s", err, b)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", b, diff)
			}
		}
	})
}

func TestFormat(t *testing.T) {
	d := topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Ring, BoundedLoad: 1.25}, Nodes: []topology.Node{
		{ID: "cache-a", Addr: "10.0.0.1:11211", Weight: 1, Zone: "z1"},
		{ID: "7", State: topology.StateDraining, Label: "no"},
	}}
	const want = `cluster: cache
algorithm: ring
ring: {vnodes: 160}
key_hash: xxh64
hash_tag: ""
replicas: 1
bounded_load: 1.25
zone_aware: false
nodes:
  - {id: cache-a, addr: "10.0.0.1:11211", weight: 1, zone: z1}
  - {id: "7", weight: 0, label: "no", state: draining}
`
	if diff := cmp.Diff(want, string(Format(d))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := string(Format(topology.Declared{})); !strings.HasSuffix(got, "nodes: []\n") {
		t.Errorf("got %s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		head + nodes,
		"cluster: c\nalgorithm: maglev\nmaglev: {table_size: 251}\nkey_hash: crc16\nhash_tag: \"{}\"\nreplicas: 2\nbounded_load: 1.25\nzone_aware: true\nnodes:\n  - id: a\n    weight: 2\n    zone: z\n    label: l\n    state: down\n",
		`{"cluster":"c","algorithm":"jump","jump":{"variant":"jumpback","unit":4},"nodes":[{"id":"a"}]}`,
		"a: &a [x]\nb: *a\n", "? a\n: b\n", "<<: {a: b}\n", "--- |\n x\n...\n", "%YAML 1.2\n---\na: !!str b\n", "\ufeffcluster: c", "nodes: [[[", "- - - -", "a:\n\tb: c", "{a", "\"\\u00", "a: 'b\n", ": :", "a: >-\n  b\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse("f", b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one clear error: %q", err)
			}
			return
		}
		if err := d.Validate(); err != nil || len(d.Nodes) == 0 {
			t.Fatalf("took what is not valid: %v, %+v", err, d)
		}
		again, err := Parse("again", Format(d))
		if err != nil {
			t.Fatalf("%v in what Format wrote:\n%s", err, Format(d))
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
