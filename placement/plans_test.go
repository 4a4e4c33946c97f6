package placement

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/topology"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/name, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// specOf reads "algorithm[:size] [key hash] [tag] [rN] [zones]".
func specOf(text string) topology.Spec {
	var s topology.Spec
	for i, word := range strings.Fields(text) {
		var n uint32
		name, _, _ := strings.Cut(word, ":")
		fmt.Sscanf(word, name+":%d", &n)
		switch {
		case i == 0 && name == "jumpback":
			s.Algorithm, s.JumpVariant, s.JumpUnit = topology.Jump, topology.JumpBack, n
		case i == 0:
			s.Algorithm = topology.Algorithm(name)
			s.VNodes, s.TableSize, s.SlotCount, s.JumpUnit, s.RendezvousTable = n, n, n, n, n
		case word == "crc16":
			s.KeyHash = topology.CRC16
		case word == "{}":
			s.HashTag = word
		case word == "zones":
			s.ZoneAware = true
		default:
			fmt.Sscanf(word, "r%d", &s.Replicas)
		}
	}
	return s
}

// zonedNodes returns n nodes in z zones, of weights 1, 2, 3, 1, ...
func zonedNodes(n, z int) []topology.Node {
	nodes := someNodes(n)
	for i := range nodes {
		nodes[i].Zone = fmt.Sprintf("z%d", i%z)
		nodes[i].Weight = uint32(1 + i%3)
	}
	return nodes
}

// Every pair of algorithm, size, key hash, hash tag and number of replicas has
// its method; the golden file is the table of docs/algorithms/movement.md.
func TestPlans(t *testing.T) {
	t.Parallel()
	all := []string{"ring", "ring:40", "jump", "jump:4", "jumpback", "rendezvous", "rendezvous:1024", "maglev:503", "maglev:251", "slots:1024", "slots:512"}
	few := []string{"ring:40", "jump", "rendezvous", "rendezvous:1024", "maglev:251", "slots:512"}
	var b strings.Builder
	tables := map[string]*Table{}
	table := func(spec string, nodes int) *Table {
		name := fmt.Sprint(spec, nodes)
		if tables[name] == nil {
			tables[name] = first(t, specOf(spec), zonedNodes(nodes, 3))
		}
		return tables[name]
	}
	for _, group := range []struct {
		name, from, to string
		specs          []string
	}{
		{"one key hash", "", "", all},
		{"16-bit key hash", " crc16", " crc16", few},
		{"another key hash", "", " crc16", few},
		{"another hash tag", "", " {}", few[:4]},
		{"the same hash tag", " {}", " {}", few[:4]},
		{"three replicas", " r3", " r3", few},
		{"three replicas in zones", " r3 zones", " r3 zones", few},
		{"three replicas, 16-bit key hash", " crc16 r3", " crc16 r3", few[:4]},
		{"three replicas, another key hash", " r3", " crc16 r3", few[:4]},
		{"more replicas", "", " r2", few},
		{"fewer replicas", " r2", "", few},
	} {
		fmt.Fprintf(&b, "# %s: from -> to, method, ratio, interval, condition\n", group.name)
		for _, from := range group.specs {
			for _, to := range group.specs {
				writePlan(t, &b, from+group.from, to+group.to, table)
			}
		}
	}
	golden(t, "plans.golden", b.String())
}

// writePlan adds a line for two mappings that know nothing of each other's past.
func writePlan(t *testing.T, b *strings.Builder, from, to string, table func(string, int) *Table) {
	t.Helper()
	r, err := MovementWith(table(from, 7), table(to, 8), MovementOptions{SampleKeys: 1000})
	if err != nil {
		t.Fatalf("%s -> %s: %v", from, to, err)
	}
	interval := "exact"
	if r.Interval != nil {
		interval = fmt.Sprintf("%.4f..%.4f", r.Interval[0], r.Interval[1])
	}
	if r.Sample != nil {
		interval += fmt.Sprintf(", sample %.4f (%.4f..%.4f)", r.Sample.Ratio, r.Sample.Interval[0], r.Sample.Interval[1])
	}
	condition, _, _ := strings.Cut(r.Conditional, ";")
	fmt.Fprintf(b, "%s -> %s, %s, %.4f, %s, %s\n", from, to, r.Method, r.Ratio, interval, condition)
}
