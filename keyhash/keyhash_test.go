package keyhash_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/keyhash"
)

// Case hash-10: hash tags cut wrongly send keys with braces to the wrong slot.
// The values were computed with an independent bitwise CRC16; the last but two
// is the one of redis/redis#6027.
func TestHash10(t *testing.T) {
	f, err := keyhash.New(keyhash.CRC16, "{}")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key  string
		slot uint16
	}{
		{"123456789", 12739},
		{"foo{}{bar}", 8363},
		{"wp:{}{same}", 1583},
		{"{}{}{x}", 2088},
		{"{}", 15257},
		{"foo{{bar}}zap", 4015},
		{"foo{bar}{zap}", 5061},
		{"foo{bar", 15278},
		{"A}B{C", 7939},
		{"A}B{C}", 14503},
		{"{user1000}.following", 3443},
		{"{user1000}.followers", 3443},
		{"a{'1':{'i32':1}}", 5540},
		{"", 0},
		{"\x00\xff\x7b\xfe\x7d", 3793},
		{"キー{タグ}", 9716},
	} {
		if got := keyhash.Slot(c.key); got != c.slot {
			t.Errorf("Slot(%q) = %d, want %d", c.key, got, c.slot)
		}
		if got := slotOf(f.Sum(c.key)); got != c.slot {
			t.Errorf("slot of Sum(%q) = %d, want %d", c.key, got, c.slot)
		}
		if got := slotOf(f.SumBytes([]byte(c.key))); got != c.slot {
			t.Errorf("slot of SumBytes(%q) = %d, want %d", c.key, got, c.slot)
		}
	}
}

// The slots that redis-server answers to CLUSTER KEYSLOT.
func TestSlotAgreesWithRedisServer(t *testing.T) {
	var want struct {
		TextSlots []uint16 `json:"text_slots"`
		Edge      []redisEdge
	}
	readJSON(t, "testdata/redis_keyslot.json", &want)
	var text struct{ Keys []string }
	readJSON(t, "testdata/keys_text.json", &text)
	if len(want.TextSlots) != len(text.Keys) || len(want.Edge) == 0 {
		t.Fatalf("%d slots for %d keys, %d edge cases", len(want.TextSlots), len(text.Keys), len(want.Edge))
	}
	for i, key := range text.Keys {
		if got := keyhash.Slot(key); got != want.TextSlots[i] {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want.TextSlots[i])
		}
	}
	for _, e := range want.Edge {
		key := string(unhex(t, e.Hex))
		if e.Len > 0 { // a long tag
			key = "p{" + strings.Repeat("q", e.Len-3) + "}"
		}
		if got := keyhash.Slot(key); got != e.Slot {
			t.Errorf("Slot(%.40q) = %d, want %d", key, got, e.Slot)
		}
	}
}

type redisEdge struct {
	Hex  string
	Len  int // of a long key that is not spelt out
	Slot uint16
}

// The hashes that xxhsum prints.
func TestXXH64AgreesWithReference(t *testing.T) {
	var v struct {
		Inputs []string `json:"inputs_hex"`
		Sums   []string `json:"xxh64"`
	}
	readJSON(t, "testdata/xxh64.json", &v)
	if len(v.Inputs) == 0 || len(v.Inputs) != len(v.Sums) {
		t.Fatalf("%d inputs, %d sums", len(v.Inputs), len(v.Sums))
	}
	var f keyhash.Func
	for i, in := range v.Inputs {
		want, err := strconv.ParseUint(v.Sums[i], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.SumBytes(unhex(t, in)); got != want {
			t.Errorf("xxh64 of %s hex = %016x, want %016x", in, got, want)
		}
	}
}

func TestTag(t *testing.T) {
	for _, c := range []struct {
		key, tag, want string
	}{
		{"user:{42}:name", "{}", "42"},
		{"user:{42}:name", "[]", "user:{42}:name"},
		{"{}a{b}", "{}", "{}a{b}"},
		{"}{a}", "{}", "a"},
		{"{a", "{}", "{a"},
		{"a}", "{}", "a}"},
		{"{{a}}", "{}", "{a"},
		{"x|a|b|", "||", "a"},
		{"x||a|", "||", "x||a|"},
		{"x|", "||", "x|"},
		{"", "{}", ""},
	} {
		if got := keyhash.Tag(c.key, c.tag[0], c.tag[1]); got != c.want {
			t.Errorf("Tag(%q, %q) = %q, want %q", c.key, c.tag, got, c.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		kind keyhash.Kind
		tag  string
		want error
	}{
		{keyhash.Kind(200), "", keyhash.ErrKind},
		{keyhash.Kind(255), "{}", keyhash.ErrKind},
		{keyhash.XXH64, "{", keyhash.ErrTag},
		{keyhash.XXH64, "{}}", keyhash.ErrTag},
		{keyhash.CRC16, "é", keyhash.ErrTag},
		{keyhash.CRC16, "{\n", keyhash.ErrTag},
		{keyhash.CRC16, "\x00}", keyhash.ErrTag},
	} {
		f, err := keyhash.New(c.kind, c.tag)
		if !errors.Is(err, c.want) || f != (keyhash.Func{}) {
			t.Errorf("New(%v, %q) = %v, %v, want %v", c.kind, c.tag, f, err, c.want)
		}
	}
}

func TestParseKind(t *testing.T) {
	for _, k := range []keyhash.Kind{keyhash.XXH64, keyhash.CRC16} {
		if got, err := keyhash.ParseKind(k.String()); got != k || err != nil {
			t.Errorf("ParseKind(%q) = %v, %v", k, got, err)
		}
	}
	for _, name := range []string{"", "XXH64", "crc16 ", "md5"} {
		if _, err := keyhash.ParseKind(name); !errors.Is(err, keyhash.ErrKind) {
			t.Errorf("ParseKind(%q): %v, want ErrKind", name, err)
		}
	}
}

func TestFuncSaysWhatItIs(t *testing.T) {
	type facts struct {
		Name, Tag string
		Kind      keyhash.Kind
		Bits      int
		Plain     bool
	}
	var got []facts
	for _, f := range allFuncs(t) {
		got = append(got, facts{f.String(), f.Tag(), f.Kind(), f.Bits(), f.Plain()})
	}
	want := []facts{
		{"xxh64", "", keyhash.XXH64, 64, true},
		{"xxh64{}", "{}", keyhash.XXH64, 64, false},
		{"crc16", "", keyhash.CRC16, 16, false},
		{"crc16{}", "{}", keyhash.CRC16, 16, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestValues(t *testing.T) {
	crc, err := keyhash.New(keyhash.CRC16, "")
	if err != nil {
		t.Fatal(err)
	}
	perSlot := make([]int, keyhash.Slots)
	all := slices.Collect(crc.Values())
	for _, h := range all {
		perSlot[slotOf(h)]++
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != 1<<16 {
		t.Errorf("%d distinct values, want 65536", len(all))
	}
	if lo, hi := slices.Min(perSlot), slices.Max(perSlot); lo != 4 || hi != 4 {
		t.Errorf("%d to %d values a slot, want 4", lo, hi)
	}
	if _, found := slices.BinarySearch(all, crc.Sum("some key")); !found {
		t.Error("Sum returned a value that Values does not have")
	}
	if n := len(slices.Collect(keyhash.Func{}.Values())); n != 0 {
		t.Errorf("xxh64 yields %d values, want none", n)
	}
	for range crc.Values() {
		break // must stop when told to
	}
}

// Law: slicing by eight and the search for the tag on the way give what one
// bit at a time and the tag cut first give.
func TestChecksumLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.SampledFrom([]byte("{}|ab\x00\x7a\x7c\xfb\xff")), 0, 40).Draw(t, "key")
		tag := rapid.SampledFrom([]string{"{}", "||", "}{", "ab"}).Draw(t, "tag")
		f, err := keyhash.New(keyhash.CRC16, tag)
		if err != nil {
			t.Fatal(err)
		}
		want := bitwise(keyhash.Tag(string(key), tag[0], tag[1]))
		if got := f.Sum(string(key)); got != keyhash.Spread(want) {
			t.Fatalf("Sum(%q) with tag %q is %016x, want %016x", key, tag, got, keyhash.Spread(want))
		}
		if got := keyhash.Checksum16Bytes(key); got != bitwise(string(key)) {
			t.Fatalf("Checksum16(%q) = %04x, want %04x", key, got, bitwise(string(key)))
		}
	})
}

// Law: with a tag, what stands outside it does not count.
func TestTagLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringMatching(`[a-z}]{0,20}`).Draw(t, "before")
		tag := rapid.StringMatching(`[a-z{]{1,20}`).Draw(t, "tag")
		after := rapid.StringMatching(`[a-z{}]{0,20}`).Draw(t, "after")
		for _, kind := range []keyhash.Kind{keyhash.XXH64, keyhash.CRC16} {
			f, err := keyhash.New(kind, "{}")
			if err != nil {
				t.Fatal(err)
			}
			whole, err := keyhash.New(kind, "")
			if err != nil {
				t.Fatal(err)
			}
			if f.Sum(before+"{"+tag+"}"+after) != whole.Sum(tag) {
				t.Fatalf("%v: %q does not count alone", f, tag)
			}
		}
	})
}

func TestSumDoesNotAllocate(t *testing.T) {
	key, raw := "user:{42}:name", []byte("user:{42}:name")
	for _, f := range allFuncs(t) {
		if n := testing.AllocsPerRun(100, func() { f.Sum(key); f.SumBytes(raw) }); n != 0 {
			t.Errorf("%v: %v allocations", f, n)
		}
	}
}

func ExampleFunc_Sum() {
	f, err := keyhash.New(keyhash.XXH64, "{}")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%016x\n", f.Sum("user:{42}:name"))
	fmt.Printf("%016x\n", f.Sum("user:{42}:mail"))
	// Output:
	// 6de6f5d076d742b9
	// 6de6f5d076d742b9
}

func ExampleSlot() {
	fmt.Println(keyhash.Slot("{user1000}.following"), keyhash.Slot("{user1000}.followers"))
	// Output: 3443 3443
}

// slotOf is the slot that a table of 16384 has for h.
func slotOf(h uint64) uint16 {
	hi, _ := bits.Mul64(h, keyhash.Slots)
	return uint16(hi)
}

// bitwise is CRC-16/XMODEM by its definition.
func bitwise(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

func allFuncs(t testing.TB) []keyhash.Func {
	t.Helper()
	var all []keyhash.Func
	for _, kind := range []keyhash.Kind{keyhash.XXH64, keyhash.CRC16} {
		for _, tag := range []string{"", "{}"} {
			f, err := keyhash.New(kind, tag)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
	}
	return all
}

func readJSON(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
