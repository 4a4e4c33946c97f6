package placement

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/topology"
)

// hash03 are the specs of the case: each algorithm, two Maglev sizes, and a
// 16-bit key hash, under which many keys meet.
func hash03() []topology.Spec {
	specs := append(allFive(), topology.Spec{Algorithm: topology.Maglev, TableSize: 251})
	for _, s := range slices.Clone(specs) {
		s.KeyHash = topology.CRC16
		specs = append(specs, s)
	}
	for i := range specs {
		specs[i].Replicas = 3
	}
	return specs
}

func hash03Nodes() []topology.Node {
	nodes := someNodes(50)
	for i := range nodes {
		nodes[i].Weight = uint32(1 + i%5)
		nodes[i].Zone = fmt.Sprintf("z%d", i%3)
	}
	return nodes
}

// mappingOf is a digest of every key's replicas by name.
func mappingOf(table *Table, keys []string) string {
	h := sha256.New()
	var list []int
	for _, k := range keys {
		list = table.AppendReplicas(list[:0], table.Hash(k), 3)
		for _, i := range list {
			fmt.Fprint(h, table.topo.Node(i).ID, ",")
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Two processes with one topology give one mapping: in any order of listing, on
// any path for ring and rendezvous, from the published bytes for all.
func TestFieldCase_hash_03(t *testing.T) {
	t.Parallel()
	keys := fieldKeys()[:10_000]
	var saved bytes.Buffer
	var want []string
	for i, spec := range hash03() {
		nodes := hash03Nodes()
		table := first(t, spec, nodes)
		owners := mappingOf(table, keys)
		draw := splitmix.Source(i)
		orders := 20
		if spec.KeyHash == topology.CRC16 {
			orders = 3 // the tables are the same
		}
		for range orders {
			splitmix.Shuffle(&draw, nodes)
			if again := first(t, spec, nodes); again.Digest() != table.Digest() {
				t.Fatalf("%s: the order of listing changes the mapping", spec.Algorithm)
			}
		}
		splitmix.Shuffle(&draw, nodes)
		if got := mappingOf(first(t, spec, nodes), keys); got != owners {
			t.Errorf("%s: the order of listing changes replicas", spec.Algorithm)
		}
		path := table
		for n := 49; n > 40; n-- {
			path = after(t, path, spec, nodes[:n])
		}
		path = after(t, path, spec, nodes)
		if stateless := spec.Algorithm == topology.Ring || spec.Algorithm == topology.Rendezvous; stateless && path.Digest() != table.Digest() {
			t.Errorf("%s: the path to the same nodes changes the mapping", spec.Algorithm)
		}
		b, err := path.topo.MarshalSaved()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&saved, "%x\n", b)
		want = append(want, mappingOf(path, keys))
	}
	inOtherProcess(t, saved.Bytes(), strings.Join(want, "\n"))
}

// inOtherProcess runs this test binary anew with one and with three processors;
// it prints the mappings that it computes.
func inOtherProcess(t *testing.T, saved []byte, want string) {
	t.Helper()
	for _, procs := range []string{"1", "3"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOtherProcess$")
		cmd.Env = append(os.Environ(), "PLACEMENT_OTHER_PROCESS=1", "GOMAXPROCS="+procs)
		cmd.Stdin = bytes.NewReader(saved)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("GOMAXPROCS=%s: %v\n%s", procs, err, out)
		}
		got, _, _ := strings.Cut(string(out), "\nPASS")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("GOMAXPROCS=%s: another process maps otherwise (-here +there):\n%s", procs, d)
		}
	}
}

// TestOtherProcess is the other process of hash-03.
func TestOtherProcess(t *testing.T) {
	if os.Getenv("PLACEMENT_OTHER_PROCESS") == "" {
		t.Skip("runs as the other process of hash-03 only")
	}
	keys := fieldKeys()[:10_000]
	for {
		var b []byte
		if _, err := fmt.Scanf("%x\n", &b); err != nil {
			return
		}
		topo, err := topology.UnmarshalSaved(b)
		if err != nil {
			t.Fatal(err)
		}
		table, err := New(topo)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(mappingOf(table, keys))
	}
}
