package jump_test

import (
	"flag"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/jump"
)

var update = flag.Bool("update", false, "write the golden files anew; a change is a new mapping")

// The native mapping is frozen: first buckets, then some after a few changes,
// both with the owners and second replicas of 1,000 keys.
func TestGolden(t *testing.T) {
	ids := []string{"cache-a", "cache-b", "cache-c", "cache-d", "cache-e", "cache-f", "cache-g", "cache-h"}
	var out strings.Builder
	for _, unit := range []uint32{1, 16} {
		first := mustBuild(t, ids, []uint32{1, 1, 2, 3, 5, 8, 13, 0}, unit)
		second, _ := mustUpdate(t, first, ids, []uint32{1, 0, 2, 3, 5, 8, 12, 0}, unit)
		second, _ = mustUpdate(t, second, ids, []uint32{1, 0, 2, 0, 5, 8, 12, 2}, unit)
		for _, v := range variants {
			writeMapping(t, &out, fmt.Sprintf("unit=%d variant=%d first", unit, v), ids, first, v)
			writeMapping(t, &out, fmt.Sprintf("unit=%d variant=%d second", unit, v), ids, second, v)
		}
	}
	// Nearly all holes, so that most keys come to the completion.
	sparse := jump.Buckets{Owner: slices.Repeat([]uint16{hole}, 2000), Last: slices.Repeat([]uint16{hole}, 2000)}
	for i := range ids {
		sparse.Owner[i*211+5] = uint16(i)
	}
	for _, v := range variants {
		writeMapping(t, &out, fmt.Sprintf("sparse variant=%d", v), ids, sparse, v)
	}
	golden(t, "testdata/mapping.golden", out.String())
}

func writeMapping(t *testing.T, out *strings.Builder, title string, ids []string, b jump.Buckets, v jump.Variant) {
	fmt.Fprintf(out, "# %s\n# owner", title)
	for _, row := range [][]uint16{b.Owner, b.Last} {
		if len(row) < 64 {
			fmt.Fprint(out, row)
		}
		sum := xxhash.New()
		for _, o := range row {
			_, _ = sum.Write([]byte{byte(o), byte(o >> 8)}) // never fails
		}
		fmt.Fprintf(out, " xxh64 %016x ", sum.Sum64())
	}
	out.WriteString("\n")
	table := mustNew(t, len(ids), b, v)
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
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the mapping changed; owners of stored data would change with it (-golden +got):\n%s", d)
	}
}

func keys(n int) []uint64 {
	hs := make([]uint64, n)
	for i := range hs {
		hs[i] = xxhash.Sum64String(fmt.Sprintf("k:%d", i))
	}
	return hs
}

// Field case hash-03: one order of listing only, and the array decides alone.
func TestHash03(t *testing.T) {
	ids, weights := names(50)
	for i := range weights {
		weights[i] = uint32(i%5) + 1
	}
	b := mustBuild(t, ids, weights, 1)
	if !cmp.Equal(b, mustBuild(t, ids, weights, 1)) {
		t.Error("two builds differ")
	}
	// CRC16 in the high bits of the hash has 16 bits only; ties abound.
	for _, v := range variants {
		one, two := mustNew(t, 50, b, v), mustNew(t, 50, b, v)
		for crc := range uint64(1 << 16) {
			h := bits.RotateLeft64(crc, 50)
			if one.Locate(h) != two.Locate(h) {
				t.Fatalf("two tables of the same buckets differ at %#x", h)
			}
		}
	}
	ids[10], ids[11] = ids[11], ids[10]
	if _, err := jump.Build(ids, weights, 1); err == nil {
		t.Error("another order of listing was accepted")
	}
}

// Field case hash-04: any node may leave, and only its keys move.
func TestHash04(t *testing.T) {
	hs := keys(100_000)
	ids, ones := names(10)
	full := mustBuild(t, ids, ones, 1)
	for _, v := range variants {
		before := mustNew(t, 10, full, v)
		owned := make([]int, 10)
		for _, h := range hs {
			owned[before.Locate(h)]++
		}
		for _, gone := range []int{9, 5, 3, 0} {
			weights := slices.Clone(ones)
			weights[gone] = 0
			b, _ := mustUpdate(t, full, ids, weights, 1)
			after := mustNew(t, 10, b, v)
			moved := 0
			for _, h := range hs {
				if before.Locate(h) != after.Locate(h) {
					moved++
				}
			}
			if moved != owned[gone] {
				t.Errorf("variant %d: node %d leaves: %d keys moved, it had %d", v, gone, moved, owned[gone])
			}
			back, _ := mustUpdate(t, b, ids, ones, 1)
			if gone < 9 && !cmp.Equal(back, full) { // out and in again: 0 keys changed bucket
				t.Errorf("node %d is back: buckets %v", gone, back)
			}
		}
		replaced := mustNew(t, 11, full.Replace(3, 10), v)
		for _, h := range hs {
			o, n := before.Locate(h), replaced.Locate(h)
			if o == 3 && n != 10 || o != 3 && n != o {
				t.Fatalf("variant %d: node 3 replaced by 10: hash %#x went from %d to %d", v, h, o, n)
			}
		}
	}
}

// The same replacement as an ordinary update: one node leaves and one comes.
func TestReplaceByUpdate(t *testing.T) {
	ids, weights := names(11)
	weights[10] = 0
	full := mustBuild(t, ids, weights, 3)
	weights[3], weights[10] = 0, 1
	b, moves := mustUpdate(t, full, ids, weights, 3)
	if want := (jump.Moves{Lost: 3, Gained: 3, Handed: 3}); moves != want {
		t.Errorf("moves %+v, want %+v", moves, want)
	}
	if got := jump.Movement(full, b); got < .0999 || got > .1001 {
		t.Errorf("%v moved, want a tenth", got)
	}
}

// Field case weight-04: 0 is a drain, never a crash and never 1.
func TestWeight04(t *testing.T) {
	ids := []string{"a", "b"}
	both := mustBuild(t, ids, []uint32{1, 1}, 1)
	drained, moves := mustUpdate(t, both, ids, []uint32{1, 0}, 1)
	if moves.Lost != 1 || moves.Gained != 0 || jump.Movement(both, drained) != .5 {
		t.Errorf("moves %+v, %v of the keys", moves, jump.Movement(both, drained))
	}
	none, _ := mustUpdate(t, drained, ids, []uint32{0, 0}, 1)
	for _, v := range variants {
		table := mustNew(t, 2, drained, v)
		for _, h := range keys(1000) {
			if got := table.AppendReplicas(nil, h, 2); !cmp.Equal(got, []int{0}) {
				t.Fatalf("2 replicas: %v, want a alone", got)
			}
		}
		table = mustNew(t, 2, none, v)
		batch := make([]int, 4)
		table.LocateBatch(batch, make([]uint64, 4))
		if got := table.Locate(42); got != -1 || batch[3] != -1 || len(table.AppendReplicas(nil, 42, 2)) != 0 {
			t.Errorf("all zero: owner %d, batch %v", got, batch)
		}
		// Holes only, as after a node in the middle left last.
		table = mustNew(t, 2, buckets("..", "ab"), v)
		table.LocateBatch(batch, make([]uint64, 4))
		if got := table.Locate(42); got != -1 || batch[3] != -1 || len(table.AppendReplicas(nil, 42, 2)) != 0 {
			t.Errorf("holes only: owner %d, batch %v", got, batch)
		}
	}
}
