package placement

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/shardd/shardd/topology"
)

func TestUpdateRefuses(t *testing.T) {
	weights := func(w ...uint32) []topology.Node {
		nodes := someNodes(len(w))
		for i := range nodes {
			nodes[i].Weight = w[i]
		}
		return nodes
	}
	tests := []struct {
		name, spec string
		nodes      []topology.Node
		path, text string
	}{
		{"no algorithm", "", someNodes(1), "algorithm", "one of"},
		{"unknown algorithm", "pond", someNodes(1), "algorithm", "pond"},
		{"not prime", "maglev:1024", someNodes(1), "maglev.table_size", "1031"},
		{"twice", "ring", append(someNodes(2), someNodes(1)...), "nodes[2].id", "duplicate"},
		{"no id", "ring", []topology.Node{{}}, "nodes[0].id", "empty"},
		{"too heavy", "ring", weights(1, topology.MaxWeight+1), "nodes[1].weight", "scale"},
		{"too many points", "ring", weights(topology.MaxWeight), "nodes", "points"},
		{"too many buckets", "jump:256", weights(100_000), "nodes", "buckets"},
		{"more nodes than entries", "maglev:13", someNodes(14), "maglev.table_size", "13"},
		{"more nodes than slots", "slots:13", someNodes(14), "slots.count", "13"},
		{"a node without a rendezvous slot", "rendezvous:256", weights(1, 1_000_000), "nodes[0].weight", "cache-0000"},
		{"a node without a 16-bit hash", "ring:1 crc16", someNodes(3000), "nodes[", "65,536"},
		{"replicas", "ring r17", someNodes(1), "replicas", "17"},
	}
	prev := first(t, specOf("ring"), someNodes(3))
	digest := prev.Digest()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, p := range []*Table{nil, prev} {
				table, err := Update(p, draft(2, specOf(tt.spec), tt.nodes))
				var field *topology.FieldError
				if table != nil || !errors.As(err, &field) || !strings.HasPrefix(field.Path, tt.path) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("got %v, %v; want a FieldError at %s that says %q", table, err, tt.path, tt.text)
				}
			}
		})
	}
	if prev.Digest() != digest || prev.topo.Version().Seq != 1 {
		t.Error("a refused update changed the version before")
	}
}

// Tables whose quotas leave a node without an entry are refused with the path
// of what is too small.
func TestStarvedIsRefused(t *testing.T) {
	for _, spec := range []string{"maglev:251", "slots:256"} {
		nodes := someNodes(400)[:200]
		for i := range nodes[:100] {
			nodes[i].Weight = 1000
		}
		_, err := Update(nil, draft(1, specOf(spec), nodes))
		var field *topology.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%s: error %v, want a FieldError", spec, err)
		}
	}
}

func TestUpdateFillsIn(t *testing.T) {
	a := first(t, specOf("maglev:251"), someNodes(3))
	if topo := a.Topology(); topo.Cause().Kind != CauseCreated || !topo.Parent().IsZero() || topo.Mapping() != a.Digest() || !topo.Complete() || len(topo.Refs()) != 1 {
		t.Errorf("first version: cause %q, parent %s, mapping %s of %s, %d objects", topo.Cause().Kind, topo.Parent(), topo.Mapping(), a.Digest(), len(topo.Refs()))
	}
	d := draft(2, specOf("maglev:251"), someNodes(4))
	d.Cause = topology.Cause{Kind: "by hand", By: "me", Why: "because"}
	d.Objects, d.Mapping, d.Parent = a.topo.Objects(), topology.Digest{1}, topology.Digest{2}
	b, err := Update(a, d)
	if err != nil {
		t.Fatal(err)
	}
	if topo := b.Topology(); topo.Cause() != d.Cause || topo.Parent() != a.topo.Digest() || topo.Mapping() != b.Digest() {
		t.Errorf("second version: cause %+v, parent %s, mapping %s", topo.Cause(), topo.Parent(), topo.Mapping())
	}
	if r := movement(t, a, b); r.Cause != "by hand" {
		t.Errorf("report's cause is %q", r.Cause)
	}
	c := after(t, b, specOf("maglev:251"), someNodes(5))
	if r := movement(t, a, c); r.Cause != CauseAdded {
		t.Errorf("cause over two versions is %q", r.Cause)
	}
}

// Next gives what New gives, on every path.
func TestNextIsNew(t *testing.T) {
	for _, spec := range []string{"ring", "rendezvous", "rendezvous:512", "jump", "maglev:251", "slots:1024"} {
		a := first(t, specOf(spec), zonedNodes(9, 3))
		for _, n := range []int{10, 8, 0, 9} {
			topo := after(t, a, specOf(spec), zonedNodes(n, 3)).Topology()
			next, err := Next(a, topo)
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := New(topo)
			if err != nil {
				t.Fatal(err)
			}
			if next.Digest() != fresh.Digest() {
				t.Errorf("%s, %d nodes: Next and New differ", spec, n)
			}
			a = fresh
		}
	}
}

// A topology whose mapping is not what this build computes is refused, and so
// is one whose table is missing or fits another spec or other nodes.
func TestNewRefuses(t *testing.T) {
	build := func(edit func(*topology.Draft)) (*Table, error) {
		d := first(t, specOf("maglev:251"), someNodes(3)).topo.Draft()
		edit(&d)
		topo, err := topology.New(d)
		if err != nil {
			t.Fatal(err)
		}
		return New(topo)
	}
	tests := []struct {
		name string
		edit func(*topology.Draft)
		want error
	}{
		{"as it is", func(*topology.Draft) {}, nil},
		{"another mapping", func(d *topology.Draft) { d.Mapping = topology.Digest{1} }, ErrMapping},
		{"no table", func(d *topology.Draft) { d.Objects = nil }, ErrTable},
		{"a table of another size", func(d *topology.Draft) { d.Spec.TableSize = 257 }, ErrTable},
		{"an owner that is gone", func(d *topology.Draft) { d.Nodes = d.Nodes[:2] }, ErrTable},
		{"an owner that drains", func(d *topology.Draft) { d.Nodes[0].State = topology.StateDraining }, ErrTable},
		{"a table that nobody owns", func(d *topology.Draft) {
			d.Objects = first(t, specOf("maglev:251"), nil).topo.Objects()
		}, ErrTable},
		{"a new node that owns nothing", func(d *topology.Draft) {
			d.Nodes = append(d.Nodes, topology.Node{ID: "new", Weight: 1})
			d.Mapping = topology.Digest{}
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table, err := build(tt.edit)
			if !errors.Is(err, tt.want) || (err == nil) != (table != nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	_, err := build(func(d *topology.Draft) { d.Mapping = topology.Digest{1} })
	own := first(t, specOf("maglev:251"), someNodes(3)).Digest()
	for _, digest := range []topology.Digest{{1}, own} {
		if !strings.Contains(err.Error(), digest.String()) {
			t.Errorf("error %q does not name digest %s", err, digest)
		}
	}
	bare, err := topology.Decode(first(t, specOf("maglev:251"), someNodes(3)).topo.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(bare); !errors.Is(err, topology.ErrMissingObject) {
		t.Errorf("without its objects: %v", err)
	}
}

// The mapping digest changes with whatever changes an owner or a replica list,
// and only then.
func TestDigestCovers(t *testing.T) {
	base := func() topology.Draft { return draft(1, specOf("ring:40 r2"), zonedNodes(6, 3)) }
	digest := func(d topology.Draft) topology.Digest {
		t.Helper()
		table, err := Update(nil, d)
		if err != nil {
			t.Fatal(err)
		}
		return table.Digest()
	}
	same, other := digest(base()), func(name string, edit func(*topology.Draft), differs bool) {
		t.Run(name, func(t *testing.T) {
			d := base()
			edit(&d)
			if got := digest(d) != digest(base()); got != differs {
				t.Errorf("mapping digest differs: %v, want %v", got, differs)
			}
		})
	}
	if same.IsZero() {
		t.Error("digest is zero")
	}
	other("address", func(d *topology.Draft) { d.Nodes[0].Addr = "x" }, false)
	other("down", func(d *topology.Draft) { d.Nodes[0].State = topology.StateDown }, false)
	other("version", func(d *topology.Draft) { d.Version.Seq = 9 }, false)
	other("zone without the rule", func(d *topology.Draft) { d.Nodes[0].Zone = "other" }, false)
	other("a node that owns nothing", func(d *topology.Draft) { d.Nodes = append(d.Nodes, topology.Node{ID: "a"}) }, false)
	other("weight", func(d *topology.Draft) { d.Nodes[0].Weight++ }, true)
	other("name", func(d *topology.Draft) { d.Nodes[0].ID = "other" }, true)
	other("replicas", func(d *topology.Draft) { d.Spec.Replicas = 3 }, true)
	other("zone rule", func(d *topology.Draft) { d.Spec.ZoneAware = true }, true)
	other("hash", func(d *topology.Draft) { d.Spec.KeyHash = topology.CRC16 }, true)
	other("tag", func(d *topology.Draft) { d.Spec.HashTag = "{}" }, true)
	other("points", func(d *topology.Draft) { d.Spec.VNodes = 41 }, true)
	other("zone under the rule", func(d *topology.Draft) {
		d.Spec.ZoneAware = true
		rule := *d
		rule.Nodes = zonedNodes(6, 3)
		rule.Nodes[0].Zone = "other"
		if digest(*d) == digest(rule) {
			t.Error("under the zone rule another zone has the same mapping digest")
		}
	}, true)
	other("algorithm", func(d *topology.Draft) { d.Spec = specOf("rendezvous r2") }, true)
}

// Under a table of rendezvous a weight may change who comes second in a slot and
// no owner; the digest tells.
func TestDigestCoversReplicasOfTable(t *testing.T) {
	table := func(weight uint32) *Table {
		nodes := []topology.Node{{ID: "a", Weight: 1000}, {ID: "b", Weight: 1000}, {ID: "c", Weight: weight}}
		return first(t, specOf("rendezvous:256 r2"), nodes)
	}
	a, b := table(1025), table(1026)
	owners, replicas := 0, 0
	for slot := range uint64(256) {
		x, y := a.AppendReplicas(nil, slot<<56, 2), b.AppendReplicas(nil, slot<<56, 2)
		if x[0] != y[0] {
			owners++
		} else if x[1] != y[1] {
			replicas++
		}
	}
	if owners != 0 || replicas == 0 || a.Digest() == b.Digest() {
		t.Errorf("%d owners and %d replicas differ, digests %s and %s; want only replicas and digests", owners, replicas, a.Digest(), b.Digest())
	}
}

// Replacing one node by another moves its keys and no others, once, though
// another node comes in the same change.
func TestReplace(t *testing.T) {
	for _, spec := range []string{"jump", "jumpback:3", "maglev:2039", "slots:4096", "slots:4096 r3", "slots:4096 r3 zones"} {
		t.Run(spec, func(t *testing.T) {
			s := specOf(spec)
			nodes := zonedNodes(8, 4)
			a := first(t, s, nodes)
			next := slices.Clone(nodes)
			next[3].ID = "a-new-one"
			b, err := UpdateWith(a, draft(2, s, next), UpdateOptions{Replace: map[string]string{nodes[3].ID: "a-new-one"}})
			if err != nil {
				t.Fatal(err)
			}
			r := movement(t, a, b)
			held := 0.0
			for _, n := range r.Nodes {
				if n.ID == nodes[3].ID {
					held = n.Before
				}
			}
			if !within(r.Ratio, held, 1e-12) || len(r.Flows) != 1 || !within(r.Ratio, r.MinimumRealised, 1e-12) {
				t.Errorf("moved %v of the %v that the node held, in flows %v", r.Ratio, held, r.Flows)
			}
		})
	}
}

func TestReplaceRefused(t *testing.T) {
	spec := specOf("maglev:251")
	a := first(t, spec, named1("a", "b", "c"))
	tests := []struct {
		name    string
		nodes   []topology.Node
		replace map[string]string
		text    string
	}{
		{"unknown old", named1("a", "b", "c", "d"), map[string]string{"x": "d"}, `"x" owns nothing in the version before`},
		{"old stays", named1("a", "b", "c", "d"), map[string]string{"a": "d"}, `"a" still owns`},
		{"new was there", named1("b", "c"), map[string]string{"a": "b"}, `"b" owned keys already`},
		{"new is not there", named1("b", "c"), map[string]string{"a": "d"}, `"d" owns nothing in the new version`},
		{"one for two", named1("c", "d"), map[string]string{"a": "d", "b": "d"}, `both "a" and "b"`},
	}
	for _, tt := range tests {
		_, err := UpdateWith(a, draft(2, spec, tt.nodes), UpdateOptions{Replace: tt.replace})
		var field *topology.FieldError
		if !errors.As(err, &field) || field.Path != "replace" || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: error %v, want one that says %s", tt.name, err, tt.text)
		}
	}
	if _, err := UpdateWith(nil, draft(1, spec, named1("a")), UpdateOptions{Replace: map[string]string{"b": "a"}}); err == nil {
		t.Error("a replacement in the first version gave no error")
	}
}

// The first table of another algorithm or size is seeded from the old mapping:
// little moves, where a table built anew moves nearly everything.
func TestSeeded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		from, to string
		nodes    int
		most     float64
	}{
		{"ring", "maglev", 20, .045},
		{"ring", "maglev", 100, .095},
		{"ring", "maglev:655373", 100, .042},
		{"ring", "slots", 20, .08},
		{"maglev", "slots", 20, .80}, // four entries to a slot, each with its own owner
		{"slots", "slots:65536", 20, .001},
		{"slots", "maglev", 20, .07},
		{"maglev", "maglev:655373", 20, .03},
		{"rendezvous:4096", "slots", 20, .04},
		{"rendezvous:4096", "slots:4096", 20, .05},
		{"ring crc16", "slots crc16", 20, .08},
		{"rendezvous crc16", "slots crc16", 20, .78}, // four values to a slot, each with its own owner
		{"ring", "maglev {}", 20, .045},
		{"ring", "slots r2", 20, .60}, // half of the copies are new
		{"ring r2", "slots r2", 20, .12},
		{"ring r3 zones", "slots r3 zones", 20, .15},
	}
	for _, tt := range tests {
		t.Run(tt.from+" to "+tt.to, func(t *testing.T) {
			nodes := someNodes(tt.nodes)
			for i := range nodes {
				nodes[i].Zone = string(rune('a' + i%4))
			}
			a := first(t, specOf(tt.from), nodes)
			r := movement(t, a, after(t, a, specOf(tt.to), nodes))
			if r.Ratio > tt.most {
				t.Errorf("moved %.4f, want at most %v; the least for these shares is %.4f", r.Ratio, tt.most, r.MinimumRealised)
			}
			t.Logf("moved %.4f, least %.4f", r.Ratio, r.MinimumRealised)
		})
	}
}

// Slots with replicas in zones move the lower bound of their quotas, and the
// report's certificate says so.
func TestSlotsCertificate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		spec     string
		n, zones int
		add      int // copies moved when a node of the first zone comes
		remove   int // and when the first node goes
	}{
		{"slots r2 zones", 12, 3, 2520, 2731},
		{"slots r3 zones", 12, 3, 3276, 4096},
		{"slots r3 zones", 30, 5, 1585, 1639},
		{"slots r3", 30, 1, 1585, 1639},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.spec, " ", tt.n), func(t *testing.T) {
			spec, nodes := specOf(tt.spec), someNodes(tt.n+1)
			for i := range nodes {
				nodes[i].Zone = fmt.Sprintf("z%d", i%tt.zones)
			}
			a := first(t, spec, nodes[:tt.n])
			for _, change := range []struct {
				nodes []topology.Node
				want  int
			}{{nodes, tt.add}, {nodes[1:tt.n], tt.remove}} {
				r := movement(t, a, after(t, a, spec, change.nodes))
				moved := math.Round(r.Ratio * float64(topology.DefaultSlots*a.copies()))
				if !r.Optimal || r.Method != MethodTable || math.Abs(moved-float64(change.want)) > 1 {
					t.Errorf("%d nodes after %d: %v copies move, want %d; least %v, optimal %v", len(change.nodes), tt.n, moved, change.want, r.MinimumRealised, r.Optimal)
				}
				if !within(r.MinimumRealised, r.Minimum, 1e-3) {
					t.Errorf("%d nodes after %d: least by weight %v, by the tables' quotas %v", len(change.nodes), tt.n, r.Minimum, r.MinimumRealised)
				}
			}
		})
	}
}
