package test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/placement"
)

var update = flag.Bool("update", false, "write the vectors of docs/spec anew")

const vectorsDir = "../docs/spec/vectors"

// vector is one file of docs/spec/vectors, see docs/spec/mapping.md.
type vector struct {
	name     string
	about    string
	table    *placement.Table
	further  []uint64 // hashes that this case asks for besides the usual
	mostKeys int      // 0: all
}

// TestVectors: the published vectors are what this release computes.
func TestVectors(t *testing.T) {
	files := map[string]bool{}
	for _, v := range vectors(t) {
		path := filepath.Join(vectorsDir, v.name+".json")
		files[path] = true
		want := v.encode(t)
		if *update {
			writePublic(t, path, want)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v; write it with -update", err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: other implementations would fail (-computed +file):\n%s", path, diff)
		}
	}
	for _, path := range vectorFiles(t) {
		if !files[path] {
			t.Errorf("%s belongs to no case; remove it", path)
		}
	}
}

func writePublic(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func vectorFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectorsDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// encode writes one line for each key, so that a change shows as the keys that
// it moves.
func (v vector) encode(t *testing.T) []byte {
	t.Helper()
	topo := v.table.Topology()
	var tables []string
	for _, o := range topo.Objects() {
		tables = append(tables, hex.EncodeToString(o.Encode()))
	}
	var b bytes.Buffer
	field := func(name string, value any) { fmt.Fprintf(&b, " %q: %s,\n", name, line(t, value)) }
	b.WriteString("{\n")
	field("name", v.name)
	field("about", v.about)
	field("topology", hex.EncodeToString(topo.Encode()))
	field("tables", append([]string{}, tables...))
	field("digest", topo.Digest())
	field("mapping", v.table.Digest())
	field("replicas", topo.Spec().Replicas)
	field("zones_relaxed", v.table.ZonesRelaxed())
	field("owners", v.owners())
	b.WriteString(" \"keys\": [\n  " + strings.Join(v.keys(t), ",\n  ") + "\n ],\n")
	b.WriteString(" \"hashes\": [\n  " + strings.Join(v.hashes(t), ",\n  ") + "\n ]\n}\n")
	return b.Bytes()
}

func line(t *testing.T, value any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func (v vector) owners() []string {
	ids := []string{}
	for _, n := range v.table.Topology().Nodes() {
		if n.OwnerWeight() > 0 {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// routed is a key or a hash with all owners in order of preference, numbered as
// in the list of owners.
type routed struct {
	Text  string `json:"text,omitempty"`
	Hex   string `json:"hex,omitempty"`
	Hash  string `json:"hash"`
	Order []int  `json:"order"`
}

func (v vector) route(h uint64) routed {
	number := map[string]int{}
	for i, id := range v.owners() {
		number[id] = i
	}
	r := routed{Hash: fmt.Sprintf("%016x", h), Order: []int{}}
	for _, x := range v.table.AppendReplicas(nil, h, len(number)) {
		r.Order = append(r.Order, number[v.table.Topology().Node(x).ID])
	}
	return r
}

func (v vector) keys(t *testing.T) []string {
	var lines []string
	for _, key := range testKeys() {
		r := v.route(v.table.Hash(key))
		if utf8.ValidString(key) && key != "" {
			r.Text = key
		} else {
			r.Hex = hex.EncodeToString([]byte(key))
		}
		lines = append(lines, keyLine(t, r, key == ""))
		if len(lines) == v.mostKeys {
			break
		}
	}
	return lines
}

// keyLine writes the empty key too, which omitempty would leave out.
func keyLine(t *testing.T, r routed, empty bool) string {
	s := string(line(t, r))
	if empty {
		s = `{"text":"",` + s[1:]
	}
	return s
}

func (v vector) hashes(t *testing.T) []string {
	hs := []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, ^uint64(0) - 1, ^uint64(0)}
	draw := splitmix.Source(1)
	for range 12 {
		hs = append(hs, draw.Next())
	}
	var lines []string
	for _, h := range append(hs, v.further...) {
		lines = append(lines, string(line(t, v.route(h))))
	}
	return lines
}

// testKeys are texts and bytes of all lengths around the steps of the hashes,
// with tags that count and tags that do not.
func testKeys() []string {
	keys := []string{"", "a", "key:1", "123456789", "{user1000}.following", "{user1000}.followers", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}",
		"no{close", "no}open", "}{", "{}", "{a}", "||", "|a|b|", "x|y|z", "a|b", "größe:{ä}:1", "\u65e5\u672c{\u8a9e}", "line\nbreak\ttab",
		"\x00", "\xff\xfe", "\xc3{\x00}\x28", "\x80|\x81|"}
	long := "The quick brown fox {jumps} over the lazy dog, and then over 64 bytes and some more of them."
	for _, n := range []int{2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 39, 44, 63, 64, 65, 90} {
		keys = append(keys, long[:n])
	}
	draw := splitmix.Source(2)
	for _, n := range []int{1, 5, 13, 16, 32, 47, 70, 100} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(draw.Next())
		}
		b[0] |= 0x80 // no text
		keys = append(keys, string(b))
	}
	return keys
}
