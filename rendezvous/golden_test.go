package rendezvous_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/keyhash"
)

var update = flag.Bool("update", false, "write the golden files; a change of them is a change of the mapping, which is frozen")

// golden is the order of preference of fixed keys on a fixed set of nodes, in a
// form that other implementations can test with.
type golden struct {
	Algorithm string     `json:"algorithm"`
	Slots     int        `json:"slots"` // 0: decided for each key
	KeyHash   string     `json:"key_hash"`
	HashTag   string     `json:"hash_tag"`
	IDs       []string   `json:"ids"`
	Weights   []uint32   `json:"weights"`
	Keys      []string   `json:"keys"`
	Order     [][]string `json:"order"` // the first three nodes of each key
}

// Case hash-11: the mapping is frozen, on every architecture.
func TestHash11Golden(t *testing.T) {
	seven := []string{"node-1", "node-2", "node-3", "node-4", "node-5", "node-6", "node-7"}
	sevenWeights := []uint32{1, 1, 2, 3, 5, 8, 13}
	var equal []string
	var equalWeights []uint32
	for i := range 40 {
		equal = append(equal, fmt.Sprintf("10.0.0.%02d:11211", i))
		equalWeights = append(equalWeights, 1)
	}
	for name, g := range map[string]golden{
		"weights":       {IDs: seven, Weights: sevenWeights, KeyHash: "xxh64"},
		"redis":         {IDs: seven, Weights: sevenWeights, KeyHash: "crc16", HashTag: "{}"},
		"equal":         {IDs: equal, Weights: equalWeights, KeyHash: "xxh64"},
		"table-weights": {IDs: seven, Weights: sevenWeights, KeyHash: "xxh64", Slots: 1 << 16},
		"table-equal":   {IDs: equal, Weights: equalWeights, KeyHash: "xxh64", Slots: 10_007},
	} {
		t.Run(name, func(t *testing.T) {
			g.Algorithm = "rendezvous"
			for i := range 1000 {
				g.Keys = append(g.Keys, fmt.Sprintf("user:{%d}:profile:%d", i%500, i))
			}
			fill(t, &g)
			checkGolden(t, filepath.Join("testdata", name+".json"), g)
		})
	}
}

// fill sets the order of every key.
func fill(t *testing.T, g *golden) {
	t.Helper()
	kind, err := keyhash.ParseKind(g.KeyHash)
	if err != nil {
		t.Fatal(err)
	}
	f, err := keyhash.New(kind, g.HashTag)
	if err != nil {
		t.Fatal(err)
	}
	var p placer = mustNew(t, g.IDs, g.Weights)
	if g.Slots > 0 {
		p = mustTable(t, g.IDs, g.Weights, g.Slots)
	}
	for _, key := range g.Keys {
		var names []string
		for _, i := range p.AppendReplicas(nil, f.Sum(key), 3) {
			names = append(names, g.IDs[i])
		}
		if names[0] != g.IDs[p.Locate(f.Sum(key))] {
			t.Fatalf("Locate and AppendReplicas differ for %q", key)
		}
		g.Order = append(g.Order, names)
	}
}

func checkGolden(t *testing.T, file string, got golden) {
	t.Helper()
	if *update {
		data, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want golden
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the mapping has changed: -want +got:\n%s", file, diff)
	}
}
