package jump_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/jump"
)

const hole = jump.NoOwner

// names returns n ids in ascending order, with weights of 1.
func names(n int) ([]string, []uint32) {
	ids, weights := make([]string, n), make([]uint32, n)
	for i := range ids {
		ids[i], weights[i] = fmt.Sprintf("node-%05d", i), 1
	}
	return ids, weights
}

func mustBuild(t testing.TB, ids []string, weights []uint32, unit uint32) jump.Buckets {
	t.Helper()
	b, err := jump.Build(ids, weights, unit)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustUpdate(t testing.TB, prev jump.Buckets, ids []string, weights []uint32, unit uint32) (jump.Buckets, jump.Moves) {
	t.Helper()
	b, moves, err := jump.Update(prev, ids, weights, unit)
	if err != nil {
		t.Fatal(err)
	}
	return b, moves
}

func mustNew(t testing.TB, n int, b jump.Buckets, v jump.Variant) *jump.Table {
	t.Helper()
	table, err := jump.New(n, b, v)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// hashes returns n hashes, the same on every call with the same seed.
func hashes(seed uint64, n int) []uint64 {
	s, h := splitmix.Source(seed), make([]uint64, n)
	for i := range h {
		h[i] = s.Next()
	}
	return h
}

// Vectors recorded from the paper's C code, Guava and dgryski/go-jump.
func TestHashVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/jump.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors [][3]any }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 400 {
		t.Fatalf("%d vectors", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		h, err := strconv.ParseUint(v[0].(string), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n, want := int(v[1].(float64)), int(v[2].(float64))
		got := []int{-9}
		jump.HashBatch(got, []uint64{h}, n)
		batch := make([]int, 5)
		jump.HashBatch(batch, []uint64{h, h, h, h, h}, n)
		if jump.Hash(h, n) != want || got[0] != want || slices.ContainsFunc(batch, func(b int) bool { return b != want }) {
			t.Errorf("Hash(%d, %d) = %d, in batches %v %v, want %d", h, n, jump.Hash(h, n), got, batch, want)
		}
	}
}

func TestHashBatch(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 2, 10, 1000, 1 << 20, math.MaxInt32} {
		for count := range 10 {
			hs := hashes(uint64(n), count)
			got := make([]int, count+1)
			got[count] = -7
			jump.HashBatch(got, hs, n)
			for i, h := range hs {
				if got[i] != jump.Hash(h, n) {
					t.Errorf("n=%d key %d of %d: %d, alone %d", n, i, count, got[i], jump.Hash(h, n))
				}
			}
			if got[count] != -7 {
				t.Errorf("n=%d: a batch of %d wrote beyond its end", n, count)
			}
		}
	}
}

// paperBackHash is JumpBackHash as the loop over the bits of u.
func paperBackHash(h uint64, n int) int {
	rng := splitmix.Source(h)
	v := rng.Next()
	u := uint32(v^v>>32) & uint32(1<<bitLen(n-1)-1)
	for u != 0 {
		q := uint32(1) << (bitLen(int(u)) - 1)
		shift := 0
		for x := u; x != 0; x &= x - 1 {
			shift ^= 32
		}
		b := q + uint32(v>>shift)&(q-1)
		for b >= uint32(n) {
			w := rng.Next()
			if b = uint32(w) & (2*q - 1); b < uint32(n) {
				break
			}
			b = uint32(w>>32) & (2*q - 1)
		}
		if b >= q {
			return int(b)
		}
		u ^= q
	}
	return 0
}

func bitLen(n int) int { return len(strconv.FormatInt(int64(n), 2)) * min(n, 1) }

func TestBackHashIsThePapersLoop(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 10, 100, 1000, 1024, 1025, 65537, 1 << 20, math.MaxInt32} {
		for _, h := range hashes(uint64(n), 20_000) {
			if got, want := jump.BackHash(h, n), paperBackHash(h, n); got != want {
				t.Fatalf("BackHash(%#x, %d) = %d, the loop gives %d", h, n, got, want)
			}
		}
	}
	if jump.BackHash(1, 0) != -1 || jump.BackHash(1, -5) != -1 {
		t.Error("no buckets: want -1")
	}
}

var functions = map[string]func(uint64, int) int{"classic": jump.Hash, "back": jump.BackHash}

// When n grows by one a key stays or moves to the new bucket.
func TestGrowthLaw(t *testing.T) {
	for name, f := range functions {
		for _, h := range hashes(3, 300) {
			at := f(h, 1)
			for n := 2; n < 600; n++ {
				b := f(h, n)
				if b != at && b != n-1 || b < 0 {
					t.Fatalf("%s: hash %#x goes from bucket %d to %d when bucket %d is added", name, h, at, b, n-1)
				}
				at = b
			}
		}
	}
}

// Each bucket gets 1/n: the mean of chi-square over many samples is n - 1, to
// within 5 % of the coefficient of variation of a multinomial (4,000 degrees of
// freedom: one standard deviation is 1.1 %).
func TestBalance(t *testing.T) {
	const keys = 10_000
	for name, f := range functions {
		for _, n := range []int{10, 100, 1000} {
			samples := 4_000 / n
			chi := 0.0
			for s := range samples {
				count := make([]float64, n)
				for _, h := range hashes(uint64(s)<<32, keys) {
					count[f(h, n)]++
				}
				for _, c := range count {
					chi += (c - keys/float64(n)) * (c - keys/float64(n)) / (keys / float64(n))
				}
			}
			if got := math.Sqrt(chi / float64(samples*(n-1))); math.Abs(got-1) > .05 {
				t.Errorf("%s N=%d: cv is %.3f of a multinomial's", name, n, got)
			}
		}
	}
}

func TestUpdateRules(t *testing.T) {
	abc := []string{"a", "b", "c", "d"}
	tests := []struct {
		name    string
		prev    jump.Buckets
		weights []uint32 // of a, b, c, d
		unit    uint32
		want    jump.Buckets
		moves   jump.Moves
	}{
		{"first", jump.Buckets{}, []uint32{1, 2, 0, 1}, 1,
			buckets("abbd", "...."), jump.Moves{Gained: 4}},
		{"units", jump.Buckets{}, []uint32{1, 1, 0, 0}, 3,
			buckets("aaabbb", "......"), jump.Moves{Gained: 6}},
		{"no change", buckets("abcd", "...."), []uint32{1, 1, 1, 1}, 1,
			buckets("abcd", "...."), jump.Moves{}},
		{"a hole in the middle", buckets("abcd", "...."), []uint32{1, 0, 1, 1}, 1,
			buckets("a.cd", ".b.."), jump.Moves{Lost: 1}},
		{"the last is cut off", buckets("abcd", "...."), []uint32{1, 1, 1, 0}, 1,
			buckets("abc", "..."), jump.Moves{Lost: 1}},
		{"the last two are cut off", buckets("abcd", "...."), []uint32{1, 1, 0, 0}, 1,
			buckets("ab", ".."), jump.Moves{Lost: 2}},
		{"an older hole is not cut off", buckets("ab.d", "..c."), []uint32{1, 1, 0, 0}, 1,
			buckets("ab.", "..c"), jump.Moves{Lost: 1}},
		{"an older hole at the end stays", buckets("abc.", "...d"), []uint32{0, 1, 1, 0}, 1,
			buckets(".bc.", "a..d"), jump.Moves{Lost: 1}},
		{"the former bucket first", buckets("a..d", ".bc."), []uint32{1, 0, 1, 1}, 1,
			buckets("a.cd", ".b.."), jump.Moves{Gained: 1}},
		{"the lowest hole next", buckets("a..d", ".bb."), []uint32{1, 0, 1, 1}, 1,
			buckets("ac.d", "..b."), jump.Moves{Gained: 1}},
		{"then a new bucket", buckets("ab", ".."), []uint32{1, 1, 1, 0}, 1,
			buckets("abc", "..."), jump.Moves{Gained: 1}},
		{"former, lowest, new", buckets("a..", ".bc"), []uint32{1, 0, 3, 0}, 1,
			buckets("accc", "...."), jump.Moves{Gained: 3}},
		{"handed over before an older hole", buckets("a.c", ".b."), []uint32{1, 0, 0, 1}, 1,
			buckets("a.d", ".b."), jump.Moves{Lost: 1, Gained: 1, Handed: 1}},
		{"less weight: the highest go", buckets("aaab", "...."), []uint32{1, 1, 0, 0}, 1,
			buckets("a..b", ".aa."), jump.Moves{Lost: 2}},
		{"more weight", buckets("ab", ".."), []uint32{3, 1, 0, 0}, 1,
			buckets("abaa", "...."), jump.Moves{Gained: 2}},
		{"all gone", buckets("abcd", "...."), []uint32{0, 0, 0, 0}, 1,
			buckets("", ""), jump.Moves{Lost: 4}},
		{"nobody remembers the hole", buckets("a.c", "..."), []uint32{1, 1, 1, 0}, 1,
			buckets("abc", "..."), jump.Moves{Gained: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prev := jump.Buckets{Owner: slices.Clone(tt.prev.Owner), Last: slices.Clone(tt.prev.Last)}
			got, moves := mustUpdate(t, tt.prev, abc, tt.weights, tt.unit)
			if d := cmp.Diff(spell(tt.want), spell(got)); d != "" {
				t.Errorf("buckets (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.moves, moves); d != "" {
				t.Errorf("moves (-want +got):\n%s", d)
			}
			if d := cmp.Diff(prev, tt.prev); d != "" {
				t.Errorf("Update changed its input:\n%s", d)
			}
		})
	}
}

// buckets reads rows in which a letter is a node and a dot is nobody.
func buckets(owner, last string) jump.Buckets {
	read := func(row string) []uint16 {
		out := make([]uint16, len(row))
		for i, c := range row {
			if out[i] = uint16(c - 'a'); c == '.' {
				out[i] = hole
			}
		}
		return out
	}
	return jump.Buckets{Owner: read(owner), Last: read(last)}
}

func spell(b jump.Buckets) [2]string {
	write := func(row []uint16) string {
		var s strings.Builder
		for _, o := range row {
			if o == hole {
				s.WriteByte('.')
			} else {
				s.WriteByte('a' + byte(o))
			}
		}
		return s.String()
	}
	return [2]string{write(b.Owner), write(b.Last)}
}

func TestReplace(t *testing.T) {
	prev := buckets("ab.b", "..a.")
	got := prev.Replace(1, 2)
	if d := cmp.Diff(spell(buckets("ac.c", "..a.")), spell(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(spell(buckets("ab.b", "..a.")), spell(prev)); d != "" {
		t.Errorf("Replace changed its receiver:\n%s", d)
	}
}

func TestRefused(t *testing.T) {
	ids, weights := names(3)
	good := mustBuild(t, ids, weights, 1)
	tests := []struct {
		name    string
		prev    jump.Buckets
		ids     []string
		weights []uint32
		unit    uint32
		want    string
	}{
		{"unit 0", good, ids, weights, 0, "0 buckets per unit"},
		{"too many", good, ids, []uint32{1, 1, 1 << 20}, 1, "more than 1048576 buckets"},
		{"too many by unit", good, ids, weights, 1 << 19, "more than 1048576 buckets"},
		{"weights that overflow", good, ids, []uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32}, math.MaxUint32, "scale the weights down"},
		{"order", good, []string{"b", "a"}, []uint32{1, 1}, 1, "strictly ascending"},
		{"unknown owner", buckets("abcd", "...."), ids, weights, 1, "entry 3 names node 3"},
		{"unknown former holder", buckets("ab.", "..d"), ids, weights, 1, "entry 2 names node 3"},
		{"rows of two lengths", jump.Buckets{Owner: []uint16{0}}, ids, weights, 1, "1 buckets but 0 former holders"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := jump.Update(tt.prev, tt.ids, tt.weights, tt.unit)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := jump.New(3, good, 7); err == nil || !strings.Contains(err.Error(), "unknown variant 7") {
		t.Errorf("New: error %v", err)
	}
	if _, err := jump.New(2, good, jump.Classic); err == nil || !strings.Contains(err.Error(), "entry 2 names node 2") {
		t.Errorf("New: error %v", err)
	}
	if _, err := jump.New(-1, jump.Buckets{}, jump.Classic); err == nil {
		t.Error("New: -1 nodes accepted")
	}
	long := make([]uint16, jump.MaxBuckets+1)
	if _, err := jump.New(3, jump.Buckets{Owner: long, Last: long}, jump.Classic); err == nil || !strings.Contains(err.Error(), "more than 1048576") {
		t.Errorf("New: error %v", err)
	}
}

func ExampleUpdate() {
	ids := []string{"a", "b", "c", "d"}
	full, _ := jump.Build(ids, []uint32{1, 1, 1, 1}, 1)
	// Node b leaves and stays in the list, so that it is remembered.
	less, _, _ := jump.Update(full, ids, []uint32{1, 0, 1, 1}, 1)
	fmt.Printf("%.4f of the keys move when b leaves\n", jump.Movement(full, less))
	back, _, _ := jump.Update(less, ids, []uint32{1, 1, 1, 1}, 1)
	fmt.Printf("%.4f of them have moved when it is back\n", jump.Movement(full, back))
	table, _ := jump.New(len(ids), back, jump.Classic)
	fmt.Println("owner of a key:", ids[table.Locate(0x9ddfea08eb382d69)])
	// Output:
	// 0.2500 of the keys move when b leaves
	// 0.0000 of them have moved when it is back
	// owner of a key: a
}
