package topology

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIdentityText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Ref{ClusterID(genDigest(t, "id")), History(rapid.Uint64().Draw(t, "history")),
			Version{rapid.Uint64().Draw(t, "epoch"), rapid.Uint64().Draw(t, "seq")}, genDigest(t, "digest")}
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Ref
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Fatalf("%s: read back as %+v, %v", b, got, err)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, s := range []string{"", "1", ".", "1.", ".1", "1.2.3", "01.2", "1.02", "+1.2", "1.-2", "1 .2", "18446744073709551616.1", "a.b"} {
		_, err := ParseVersion(s)
		f(err, "want EPOCH.SEQ")
	}
	_, err := ParseDigest("abc")
	f(err, "want 32 hexadecimal digits")
	_, err = ParseDigest(strings.Repeat("g", 32))
	f(err, "hexadecimal")
	_, err = ParseClusterID("")
	f(err, "cluster id")
	var h History
	f(h.UnmarshalText([]byte("1")), "want 16 hexadecimal digits")
	f(h.UnmarshalText([]byte(strings.Repeat("x", 16))), "want 16 hexadecimal digits")
	if h != 0 {
		t.Error("a refused history was taken")
	}
}

func TestVersionOrder(t *testing.T) {
	versions := []Version{{}, {0, 1}, {1, 1}, {1, 2}, {1, 1 << 40}, {2, 1}, {1 << 40, 0}}
	for i, v := range versions {
		for j, w := range versions {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := v.Compare(w); got != want {
				t.Errorf("%s.Compare(%s) = %d, want %d", v, w, got, want)
			}
		}
		if v.IsZero() != (i == 0) {
			t.Errorf("%s.IsZero() = %t", v, v.IsZero())
		}
	}
}

func TestFreshIdentities(t *testing.T) {
	if a, b := NewClusterID(), NewClusterID(); a == b || a.IsZero() {
		t.Errorf("%s, %s", a, b)
	}
	if a, b := NewHistory(), NewHistory(); a == b || a == 0 {
		t.Errorf("%s, %s", a, b)
	}
	if s := (Ref{}).String(); s != "none" {
		t.Errorf("got %q", s)
	}
	if s := mustTopology(baseDraft()).Ref().String(); !strings.HasPrefix(s, "2.45@") || len(s) != 13 {
		t.Errorf("got %q", s)
	}
}

// TestSum pins the digest: SHA-256 cut to 128 bits (FIPS 180-4, "abc").
func TestSum(t *testing.T) {
	if got := Sum([]byte("abc")).String(); got != "ba7816bf8f01cfea414140de5dae2223" {
		t.Errorf("got %s", got)
	}
}
