package placement

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardd/shardd/topology"
)

// frozenSpecs are the specs whose mapping is frozen.
var frozenSpecs = []string{"ring", "jump", "jumpback:2", "rendezvous", "rendezvous:4096", "maglev", "slots", "ring crc16", "slots crc16 {}", "slots:1024 r3 zones", "ring r3 zones", "rendezvous r3 zones", "maglev:2039 r3 zones", "jump r3 zones"}

// frozenNodes are seven nodes of weights 1, 1, 2, 3, 5, 8, 13.
func frozenNodes() []topology.Node {
	weights := []uint32{1, 1, 2, 3, 5, 8, 13}
	nodes := make([]topology.Node, len(weights))
	for i, w := range weights {
		nodes[i] = topology.Node{ID: fmt.Sprintf("node-%c", 'a'+i), Addr: fmt.Sprintf("10.0.0.%d:11211", i+1), Weight: w, Zone: fmt.Sprintf("z%d", i%4)}
	}
	return nodes
}

// Owners of 1,000 fixed keys never change from release to release, on any
// architecture: a change of a mapping needs a new algorithm or mapping version.
func TestFieldCase_hash_11(t *testing.T) {
	for _, spec := range frozenSpecs {
		table := first(t, specOf(spec), frozenNodes())
		name := strings.NewReplacer(" ", "-", ":", "", "{}", "tag").Replace(spec)
		golden(t, filepath.Join("owners", name+".golden"), ownersText(table))
		openSaved(t, table, filepath.Join("testdata", "saved", name+".topology"))
	}
}

// ownersText has a line for each key: its replicas' letters.
func ownersText(table *Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# mapping %s\n", table.Digest())
	for i := range 1000 {
		key := fmt.Sprintf("key:%d", i)
		if i%10 == 0 {
			key = fmt.Sprintf("{tag%d}:key:%d", i%70, i)
		}
		fmt.Fprintf(&b, "%s ", key)
		for _, x := range table.AppendReplicas(nil, table.Hash(key), table.replicas) {
			b.WriteByte(table.topo.Node(x).ID[len("node-")])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// openSaved opens the topology that an earlier release wrote.
func openSaved(t *testing.T, table *Table, path string) {
	t.Helper()
	if *update {
		b, err := table.topo.MarshalSaved()
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	topo, err := topology.UnmarshalSaved(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	old, err := New(topo)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if got, want := ownersText(old), ownersText(table); got != want {
		t.Errorf("%s gives other owners than the spec built anew", path)
	}
}

// A topology of a mapping version that this release does not know is refused:
// never guessed.
func TestFieldCase_hash_11_unknown(t *testing.T) {
	for _, a := range topology.Algorithms() {
		b := slices.Clone(first(t, topology.Spec{Algorithm: a}, frozenNodes()).topo.Encode())
		at := bytes.Index(b, []byte(string(a)+"/1"))
		if at < 0 {
			t.Fatalf("%s: no mapping version in the encoding", a)
		}
		b[at+len(a)+1] = '2'
		if _, err := topology.Decode(b); !errors.Is(err, topology.ErrUnknown) {
			t.Errorf("%s/2: %v, want ErrUnknown", a, err)
		}
	}
}
