package slots_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/slots"
)

var update = flag.Bool("update", false, "write the golden files anew; a change is a new mapping")

// The native mapping is frozen: a first table, then one after changes, with the
// primaries and further copies of 1,000 keys.
func TestGolden(t *testing.T) {
	ids := []string{"cache-a", "cache-b", "cache-c", "cache-d", "cache-e", "cache-f", "cache-g", "cache-h"}
	weights := []uint32{1, 1, 2, 3, 5, 8, 13, 0}
	later := []uint32{1, 0, 2, 3, 5, 8, 12, 4}
	zones := []uint16{0, 1, 2, 0, 1, 2, 0, 1}
	var out strings.Builder
	for _, c := range []struct {
		count, replicas int
		zones           []uint16
	}{{16384, 1, nil}, {16384, 2, zones}, {1000, 3, zones}, {1000, 3, nil}, {1000, 5, zones}} {
		title := fmt.Sprintf("count=%d replicas=%d zones=%v", c.count, c.replicas, c.zones)
		first := mustBuild(t, ids, weights, c.zones, c.count, c.replicas)
		writeMapping(t, &out, title+" first", ids, first)
		second, _ := mustUpdate(t, first, ids, later, c.zones, c.count, c.replicas)
		writeMapping(t, &out, title+" second", ids, second)
	}
	golden(t, "testdata/mapping.golden", out.String())
}

func writeMapping(t *testing.T, out *strings.Builder, title string, ids []string, rows slots.Rows) {
	fmt.Fprintf(out, "# %s, xxh64 of the rows", title)
	for _, row := range rows {
		sum := xxhash.New()
		for _, o := range row {
			_, _ = sum.Write([]byte{byte(o), byte(o >> 8)}) // never fails
		}
		fmt.Fprintf(out, " %016x", sum.Sum64())
	}
	out.WriteString("\n")
	table := mustNew(t, len(ids), rows)
	for i := range 1000 {
		key := fmt.Sprintf("k:%d", i)
		out.WriteString(key)
		for _, o := range table.AppendReplicas(nil, xxhash.Sum64String(key), max(2, len(rows))) {
			fmt.Fprintf(out, " %s", ids[o])
		}
		out.WriteString("\n")
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
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the mapping changed; owners of stored data would change with it (-golden +got):\n%s", d)
	}
}

// Field case hash-03: the order of listing cannot matter, because any order but
// one is refused; the same arguments give the same table.
func TestHash03(t *testing.T) {
	ids, weights := names(50)
	for i := range weights {
		weights[i] = uint32(i%5) + 1
	}
	for _, replicas := range []int{1, 3} {
		first := mustBuild(t, ids, weights, cycle(50, 3), slots.DefaultCount, replicas)
		if !equal(first, mustBuild(t, ids, weights, cycle(50, 3), slots.DefaultCount, replicas)) {
			t.Error("two builds differ")
		}
	}
	swapped := slices.Clone(ids)
	swapped[10], swapped[11] = ids[11], ids[10]
	if _, err := slots.Build(swapped, weights, nil, slots.DefaultCount, 1); err == nil {
		t.Error("another order of listing was accepted")
	}
	// What a zone is called does not matter, only who shares it.
	named := cycle(50, 3)
	for i := range named {
		named[i] = 60_000 - 7*named[i]
	}
	if !equal(mustBuild(t, ids, weights, cycle(50, 3), 1000, 3), mustBuild(t, ids, weights, named, 1000, 3)) {
		t.Error("other numbers for the same zones gave another table")
	}
}
