package keyhash

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"
)

// hashVectors are raw hashes computed by the reference tools that they name.
type hashVectors struct {
	Inputs []string `json:"inputs_hex"`
	Hashes map[string]struct {
		From   string   `json:"from"`
		Values []string `json:"values"`
	} `json:"hashes"`
	HAProxy struct {
		Inputs []string            `json:"inputs_hex"`
		Values map[string][]string `json:"values"`
	} `json:"haproxy"`
}

func readVectors(t *testing.T) hashVectors {
	t.Helper()
	b, err := os.ReadFile("testdata/hashes.json")
	if err != nil {
		t.Fatal(err)
	}
	var v hashVectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func unhex(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// kindVectors say which list of the recording a kind is.
var kindVectors = map[string]Kind{
	"libhashkit/default": OneAtATime, "libhashkit/md5": MD5, "libhashkit/crc": CRC15, "libhashkit/fnv1_64": FNV1Low,
	"libhashkit/fnv1a_64": FNV1ALow, "libhashkit/fnv1_32": FNV1, "libhashkit/fnv1a_32": FNV1A, "libhashkit/murmur": Murmur2,
	"libhashkit/jenkins": Jenkins, "libhashkit/murmur3": Murmur3, "crc32": CRC32, "crc32c": CRC32C, "fnv1a_32": FNV1A32,
	"fnv1_64": FNV1Std, "fnv1a_64": FNV1AStd, "crc64_ecma": CRC64, "crc16_xmodem": CRC16, "xxh64/seed0": XXH64,
	"murmur3_x64_128/seed0 (h1||h2 hex)": Murmur128,
}

// value returns the hash proper of a sum.
func value(k Kind, sum uint64) uint64 {
	switch {
	case k == CRC16:
		return sum>>50 | sum<<14&0xffff
	case k.Low32():
		return sum >> 32
	}
	return sum
}

// Every hash agrees with the tool that defines it, for texts and bytes.
func TestForeignVectors(t *testing.T) {
	v := readVectors(t)
	checked := 0
	for name, kind := range kindVectors {
		list, ok := v.Hashes[name]
		if !ok || len(list.Values) != len(v.Inputs) {
			t.Errorf("%s: %d values in the recording", name, len(list.Values))
			continue
		}
		for i, in := range v.Inputs {
			want, err := strconv.ParseUint(list.Values[i], 10, 64)
			if kind == XXH64 || kind == Murmur128 {
				want, err = strconv.ParseUint(list.Values[i][:16], 16, 64)
			}
			if err != nil {
				t.Fatal(err)
			}
			key := unhex(t, in)
			if got := value(kind, Func{kind: kind}.Sum(key)); got != want {
				t.Errorf("%s of %s: %d, want %d (%s)", name, in, got, want, list.From)
			}
			if a, b := (Func{kind: kind}).Sum(key), (Func{kind: kind}).SumBytes([]byte(key)); a != b {
				t.Errorf("%s of %s: text and bytes differ", name, in)
			}
			checked++
		}
	}
	if want := len(kindVectors) * 131; checked != want {
		t.Errorf("%d values checked, want %d", checked, want)
	}
}

func TestHAProxyVectors(t *testing.T) {
	v := readVectors(t)
	for name, kind := range map[string]Kind{"sdbm": SDBM, "djb2": DJB2, "wt6": WT6, "crc32": CRC32} {
		for arg, avalanche := range map[string]bool{"(0)": false, "(1)": true} {
			list := v.HAProxy.Values[name+arg]
			if len(list) != 238 {
				t.Fatalf("%s%s: %d values", name, arg, len(list))
			}
			f := Func{kind: kind, avalanche: avalanche}
			for i, in := range v.HAProxy.Inputs {
				want, _ := strconv.ParseUint(list[i], 10, 32)
				if got := f.Sum(unhex(t, in)) >> 32; got != want {
					t.Errorf("%s%s of %s: %d, want %d", name, arg, in, got, want)
				}
			}
		}
	}
}

// MD5 in its forms, the seeded XXH64 that Maglev takes, and SipHash under the
// published key.
func TestDigestVectors(t *testing.T) {
	v := readVectors(t)
	for i, in := range v.Inputs {
		key := unhex(t, in)
		d := unhex(t, v.Hashes["md5"].Values[i])
		if got, want := MD5.Narrow(key), binary.LittleEndian.Uint32([]byte(d)); got != want {
			t.Errorf("md5 of %s: %x, want %x", in, got, want)
		}
		if got, want := MD5Signed.Wide(key), binary.LittleEndian.Uint64([]byte(d))+1<<63; got != want {
			t.Errorf("signed md5 of %s: %x, want %x", in, got, want)
		}
		seeded := xxhash.NewWithSeed(1)
		_, _ = seeded.WriteString(key)
		if want, _ := strconv.ParseUint(v.Hashes["xxh64/seed1"].Values[i], 16, 64); seeded.Sum64() != want {
			t.Errorf("xxh64 with seed 1 of %s: %x, want %x", in, seeded.Sum64(), want)
		}
		want, _ := strconv.ParseUint(v.Hashes["siphash24/k=000102..0f"].Values[i], 10, 64)
		if got := siphash.Hash(0x0706050403020100, 0x0f0e0d0c0b0a0908, []byte(key)); got != want {
			t.Errorf("siphash of %s: %d, want %d", in, got, want)
		}
		m, _ := strconv.ParseUint(v.Hashes["murmur3_x86_32/seed0x9747b28c"].Values[i], 10, 32)
		if got := murmur3x86(key, 0x9747b28c); uint64(got) != m {
			t.Errorf("murmur3 of %s: %d, want %d", in, got, m)
		}
	}
}

// Hashing on from a sum is hashing the whole.
func TestContinued(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {"key-1", "http://10.0.0.1:80"}, {"\xff\x80", "n"}} {
		both := c[0] + c[1]
		if a, b := FNV1AFrom(FNV1AStd.Wide(c[0]), c[1]), FNV1AStd.Wide(both); a != b {
			t.Errorf("fnv1a of %q: %x, want %x", both, a, b)
		}
		if a, b := FNV1A32From(FNV1A32.Narrow(c[0]), c[1]), FNV1A32.Narrow(both); a != b {
			t.Errorf("fnv1a 32 of %q: %x, want %x", both, a, b)
		}
		if a, b := CRC32CFrom(CRC32C.Narrow(c[0]), c[1]), CRC32C.Narrow(both); a != b {
			t.Errorf("crc32c of %q: %x, want %x", both, a, b)
		}
	}
}

func TestInput(t *testing.T) {
	f := func(in Input, depth uint8, key, want string) {
		t.Helper()
		h := Func{kind: CRC32}.WithInput(in, depth)
		if got := h.Sum(key) >> 32; got != uint64(CRC32.Narrow(want)) {
			t.Errorf("%d, depth %d: %q is hashed as another text than %q", in, depth, key, want)
		}
	}
	f(InputKey, 0, "/a?x", "/a?x")
	f(InputPath, 0, "/a/b?x=/1", "/a/b")
	f(InputWholeURI, 0, "/a/b?x=1", "/a/b?x=1")
	f(InputPath, 1, "/a/b/c?x", "/a")
	f(InputPath, 2, "/a/b/c?x", "/a/b")
	f(InputPath, 2, "/a/b?x/y", "/a/b")
	f(InputWholeURI, 2, "/a/b?x/y", "/a/b?x")
	f(InputPath, 9, "/a/b?x", "/a/b")
	f(InputPath, 1, "", "")
}

func TestJavaString(t *testing.T) {
	for s, want := range map[string]uint32{"": 0, "a": 97, "key-0": 101943362, "é": 233, "🔥": 31*0xd83d + 0xdd25} {
		if got := JavaString.Narrow(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

func TestIPOctets(t *testing.T) {
	fold := func(b ...uint32) (h uint32) {
		h = 89
		for _, c := range b {
			h = (h*113 + c) % 6271
		}
		return h
	}
	for s, want := range map[string]uint32{"10.1.2.3": fold(10, 1, 2), "10.1.2.99": fold(10, 1, 2), "x": fold('x'),
		"::1": fold(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)} {
		if got := IPv4Octets.Narrow(s); got != want {
			t.Errorf("%s: %d, want %d", s, got, want)
		}
	}
}

// The values of a narrow hash are those that it has, in ascending order.
func TestFew(t *testing.T) {
	for k := XXH64; k < numKinds; k++ {
		f := Func{kind: k}
		n, last := 0, uint64(0)
		for h := range f.Values() {
			if v := value(k, h); n > 0 && v <= last {
				t.Fatalf("%v: value %d after %d", k, v, last)
			} else {
				last = v
			}
			n++
		}
		if f.Few() != (n > 0) || f.Few() && n > 1<<f.Bits() {
			t.Errorf("%v: %d values for %d bits", k, n, f.Bits())
		}
		for _, key := range []string{"", "a", "user:17", "a longer key than the others"} {
			if v := value(k, f.Sum(key)); f.Few() && v > last {
				t.Errorf("%v of %q: %d is above %d", k, key, v, last)
			}
		}
	}
}

func TestForeignNames(t *testing.T) {
	seen := map[string]bool{}
	for k := XXH64; k < numKinds; k++ {
		if seen[k.String()] || k.String() == "" {
			t.Errorf("kind %d is called %q", k, k)
		}
		seen[k.String()] = true
		if _, err := ParseKind(k.String()); (err == nil) != (k <= CRC16) {
			t.Errorf("ParseKind(%v): %v", k, err)
		}
	}
}

func TestForeignDoesNotAllocate(t *testing.T) {
	for k := XXH64; k < numKinds; k++ {
		f := Func{kind: k, tagged: true, open: '{', close: '}'}
		if k == IPv4Octets { // for planning; it parses
			continue
		}
		if n := testing.AllocsPerRun(20, func() { f.Sum("a{key:000000000017}b") }); n != 0 {
			t.Errorf("%v: %v allocations", k, n)
		}
	}
}

func BenchmarkForeign(b *testing.B) {
	for k := XXH64; k < numKinds; k++ {
		f := Func{kind: k}
		b.Run(k.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Sum("key:000000000017")
			}
		})
	}
}
