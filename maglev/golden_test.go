package maglev_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/maglev"
)

var update = flag.Bool("update", false, "write the golden files anew; a change is a new mapping")

// The native mapping is frozen: a first table, then one with a node more and a
// node less, both with the owners and second replicas of 1,000 keys.
func TestGolden(t *testing.T) {
	ids := []string{"cache-a", "cache-b", "cache-c", "cache-d", "cache-e", "cache-f", "cache-g"}
	weights := []uint32{1, 1, 2, 3, 5, 8, 13}
	later := []string{"cache-a", "cache-c", "cache-d", "cache-dd", "cache-e", "cache-f", "cache-g"}
	laterWeights := []uint32{1, 2, 3, 4, 5, 8, 12}
	var out strings.Builder
	for _, size := range []uint32{251, 65537} {
		first := mustBuild(t, ids, weights, size)
		writeMapping(t, &out, fmt.Sprintf("M=%d first", size), ids, first)
		second, _ := mustUpdate(t, renumber(first, ids, later), later, laterWeights)
		writeMapping(t, &out, fmt.Sprintf("M=%d second", size), later, second)
	}
	golden(t, "testdata/mapping.golden", out.String())
}

func writeMapping(t *testing.T, out *strings.Builder, title string, ids []string, entries []uint16) {
	sum := xxhash.New()
	for _, e := range entries {
		_, _ = sum.Write([]byte{byte(e), byte(e >> 8)}) // never fails
	}
	fmt.Fprintf(out, "# %s, xxh64 of the entries %016x\n", title, sum.Sum64())
	table := mustNew(t, len(ids), entries)
	for i := range 1000 {
		key := fmt.Sprintf("k:%d", i)
		r := table.AppendReplicas(nil, xxhash.Sum64String(key), 2)
		fmt.Fprintf(out, "%s %s %s\n", key, ids[r[0]], ids[r[1]])
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("the mapping changed; owners of stored data would change with it (-golden +got):\n%s", d)
	}
}

// Field case hash-03: the order of listing cannot matter, because any order but
// one is refused; the same arguments give the same table.
func TestHash03(t *testing.T) {
	for _, size := range []uint32{251, 65537} {
		ids, weights := names(50)
		for i := range weights {
			weights[i] = uint32(i%5) + 1
		}
		first := mustBuild(t, ids, weights, size)
		if !slices.Equal(first, mustBuild(t, ids, weights, size)) {
			t.Errorf("M=%d: two builds differ", size)
		}
		ids[10], ids[11] = ids[11], ids[10]
		if _, err := maglev.Build(ids, weights, size); err == nil {
			t.Errorf("M=%d: another order of listing was accepted", size)
		}
	}
}
