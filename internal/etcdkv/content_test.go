package etcdkv

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/topology"
)

func noise(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(b)
	return b
}

func TestPackParts(t *testing.T) {
	for _, c := range []struct {
		name  string
		data  []byte
		parts int
	}{
		{"nothing", nil, 1},
		{"small", []byte("x"), 1},
		{"compressible", []byte(strings.Repeat("node-17 ", 1<<18)), 1},
		{"noise just under a part", noise(PartSize - 16), 1},
		{"noise of a part", noise(PartSize), 2},
		{"1.6 MB of noise", noise(1_600_000), 4},
		{"the most", noise(MaxParts*PartSize - 16), MaxParts},
	} {
		parts, err := pack(c.data)
		if err != nil || len(parts) != c.parts {
			t.Errorf("%s: %d parts, want %d (%v)", c.name, len(parts), c.parts, err)
			continue
		}
		got, err := unpack(parts, topology.Sum(c.data))
		if err != nil || !bytes.Equal(got, c.data) {
			t.Errorf("%s: read back: %v", c.name, err)
		}
	}
}

func TestPackTooLarge(t *testing.T) {
	for name, data := range map[string][]byte{"stored": noise(MaxParts * PartSize), "raw": make([]byte, MaxContent+1)} {
		_, err := pack(data)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnpackRefuses(t *testing.T) {
	data := noise(2*PartSize + 5)
	sum := topology.Sum(data)
	whole, err := pack(data)
	if err != nil {
		t.Fatal(err)
	}
	damage := func(part, at int) [][]byte {
		parts := make([][]byte, len(whole))
		for i := range parts {
			parts[i] = bytes.Clone(whole[i])
		}
		parts[part][at] ^= 1
		return parts
	}
	for _, c := range []struct {
		name  string
		parts [][]byte
		want  error
	}{
		{"nothing", nil, ErrMissing},
		{"a part is wanting", whole[:2], ErrMissing},
		{"the first is wanting", whole[1:], ErrCorrupt},
		{"no header", [][]byte{{}}, ErrCorrupt},
		{"half a header", [][]byte{whole[0][:5]}, ErrCorrupt},
		{"magic", damage(0, 0), ErrCorrupt},
		{"codec", damage(0, 4), ErrCorrupt},
		{"another codec", damage(0, 4), ErrCorrupt},
		{"length", damage(0, 6), ErrCorrupt},
		{"data", damage(1, 9), ErrCorrupt},
		{"swapped", [][]byte{whole[0], whole[2], whole[1]}, ErrCorrupt},
	} {
		if _, err := unpack(c.parts, sum); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if got, err := unpack(append(whole, []byte("somebody else's")), sum); err != nil || !bytes.Equal(got, data) {
		t.Errorf("with a part too many: %v", err)
	}
}

func TestPackLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "piece")
		data := bytes.Repeat(piece, rapid.IntRange(0, 300).Draw(t, "times"))
		parts, err := pack(data)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range parts {
			if len(p) > PartSize || len(p) == 0 {
				t.Fatalf("part %d has %d bytes", i, len(p))
			}
		}
		if got, err := unpack(parts, topology.Sum(data)); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("read back: %v", err)
		}
	})
}

// FuzzUnpack: whatever the bytes, an answer with the digest, or an error.
func FuzzUnpack(f *testing.F) {
	for _, data := range [][]byte{nil, []byte("x"), []byte(strings.Repeat("ab", 900))} {
		parts, err := pack(data)
		if err != nil {
			f.Fatal(err)
		}
		sum := topology.Sum(data)
		f.Add(parts[0], sum[:])
	}
	f.Add([]byte("SHC\x01\x01\x01\xff\xff\xff\x1f\x28\xb5\x2f\xfd\x04\x00"), make([]byte, 16))
	f.Fuzz(func(t *testing.T, part, digest []byte) {
		var want topology.Digest
		copy(want[:], digest)
		data, err := unpack([][]byte{part}, want)
		switch {
		case err == nil && topology.Sum(data) != want:
			t.Fatal("accepted data without their digest")
		case err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrMissing):
			t.Fatalf("error without a name: %v", err)
		}
	})
}
