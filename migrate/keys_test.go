package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// TestCountKeysAgrees: what is counted key by key is the share that the report
// says, within what a sample of that size allows.
func TestCountKeysAgrees(t *testing.T) {
	const n = 50_000
	for _, a := range topology.Algorithms() {
		for _, replicas := range []uint32{1, 2} {
			p := plan(t, topology.Spec{Algorithm: a, Replicas: replicas}, []uint32{1, 1, 2, 1}, []uint32{1, 0, 2, 1, 1})
			got, err := CountKeys(p.From.Table, p.To.Table, numbered(n))
			if err != nil {
				t.Fatal(err)
			}
			ratio := p.Report.Ratio
			if sigma := math.Sqrt(ratio * (1 - ratio) / n); math.Abs(got.Ratio-ratio) > 5*sigma+1e-3*float64(replicas-1) {
				t.Errorf("%s, %d replicas: counted %.5f, report says %.5f (sigma %.5f)", a, replicas, got.Ratio, ratio, sigma)
			}
			if got.Total != n || replicas == 1 && got.Copies != got.Moved || got.Copies < got.Moved {
				t.Errorf("%s, %d replicas: %+v", a, replicas, got)
			}
		}
	}
}

func numbered(n int) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for i := range n {
			if !yield(fmt.Appendf(nil, "user:%d", i), nil) {
				return
			}
		}
	}
}

// TestCountKeysAcrossHashes: a change of the key hash hashes each side its own way.
func TestCountKeysAcrossHashes(t *testing.T) {
	from := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Slots}, 1, 1, 1))
	to := mustNext(t, from, declared(topology.Spec{Algorithm: topology.Slots, KeyHash: topology.CRC16, HashTag: "{}"}, 1, 1, 1))
	got, err := CountKeys(from, to, numbered(10_000))
	if err != nil {
		t.Fatal(err)
	}
	want := KeyCount{Total: 10_000}
	for key := range numbered(10_000) {
		a, _ := from.Owner(string(key))
		b, _ := to.Owner(string(key))
		if a != b {
			want.Moved++
		}
	}
	want.Copies, want.Ratio = want.Moved, float64(want.Moved)/10_000
	if diff := cmp.Diff(want, got); diff != "" || got.Moved < 6000 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountKeysWithoutOwners(t *testing.T) {
	spec := topology.Spec{Algorithm: topology.Ring}
	some := mustNext(t, nil, declared(spec, 1, 1))
	none := mustNext(t, some, declared(spec))
	for _, c := range []struct {
		from, to *placement.Table
		want     KeyCount
	}{
		{some, none, KeyCount{Total: 10, Moved: 10, Ratio: 1}},
		{none, some, KeyCount{Total: 10}},
		{none, none, KeyCount{Total: 10}},
	} {
		got, err := CountKeys(c.from, c.to, numbered(10))
		if report, _ := placement.Movement(c.from, c.to); report.Ratio != got.Ratio {
			t.Errorf("the report says %v, the count %v", report.Ratio, got.Ratio)
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestKeys(t *testing.T) {
	f := func(text string, hexadecimal bool, want []string, wantErr string) {
		t.Helper()
		var got []string
		var err error
		for key, e := range Keys(strings.NewReader(text), hexadecimal) {
			if err = e; e == nil {
				got = append(got, string(key))
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%q: got %v, want %q", text, err, wantErr)
		}
	}
	long := strings.Repeat("x", MaxKey)
	f("", false, nil, "")
	f("a\nb", false, []string{"a", "b"}, "")
	f("a\n\n b \n", false, []string{"a", "", " b "}, "")
	f("\x00\xff\t\n", false, []string{"\x00\xff\t"}, "")
	f(long+"\nb\n", false, []string{long, "b"}, "")
	f("a\n"+long+"x\n", false, []string{"a"}, "line 2: longer than 1048576 bytes")
	f(long+long+"xx", false, nil, "line 1: longer than 1048576 bytes")
	f("a\nb\r\n", false, []string{"a"}, "line 2: ends in a carriage return")
	f("0a\nFF00\n\n", true, []string{"\n", "\xff\x00", ""}, "")
	f("0a\nxy\n", true, []string{"\n"}, "line 2: not hexadecimal")
	f("abc", true, nil, "line 1: not hexadecimal")
	for range Keys(strings.NewReader("a\nb\n"), false) {
		break // must not be called again
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\nb"), false)
	f.Add([]byte("0a\n\nfg\r\n"), true)
	f.Fuzz(func(t *testing.T, b []byte, hexadecimal bool) {
		n := 0
		for key, err := range Keys(bytes.NewReader(b), hexadecimal) {
			if n++; err != nil && key != nil {
				t.Fatalf("both a key and an error")
			}
		}
		if most := bytes.Count(b, []byte("\n")) + 1; n > most {
			t.Fatalf("%d keys of at most %d lines", n, most)
		}
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestKeysReadError(t *testing.T) {
	table := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Ring}, 1, 1))
	_, err := CountKeys(table, table, Keys(failing{}, false))
	if err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("got %v", err)
	}
}

// TestKeysByteOrderMark: a mark before the first key would be routed as part of it.
func TestKeysByteOrderMark(t *testing.T) {
	for _, text := range []string{"\xef\xbb\xbfa\n", "\xff\xfea\x00\n", "\xfe\xff\x00a"} {
		for key, err := range Keys(strings.NewReader(text), false) {
			if err == nil || !strings.Contains(err.Error(), "line 1: begins with a byte order mark") {
				t.Errorf("%q: key %q, %v", text, key, err)
			}
		}
	}
	for key, err := range Keys(strings.NewReader("efbbbf61\n"), true) {
		if err != nil || string(key) != "\xef\xbb\xbfa" {
			t.Errorf("key %q, %v", key, err)
		}
	}
}
