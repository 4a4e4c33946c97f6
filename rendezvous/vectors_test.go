package rendezvous

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/splitmix"
)

const vectorsPath = "../docs/spec/exponential-vectors.json"

// TestVectors: the published values of expo are what this package computes. The
// owners of keys seldom show a mistake in the last bits; these do.
func TestVectors(t *testing.T) {
	xs := []uint64{0, 1, 2, 1<<47 - 1, 1 << 47, 1<<48 - 2, 1<<48 - 1}
	for k := range 48 {
		xs = append(xs, 1<<48-1-1<<k) // 1-u next to a power of two
	}
	draw := splitmix.Source(3)
	for range 200 {
		xs = append(xs, draw.Next()>>16)
	}
	lines := make([][2]string, len(xs))
	for i, x := range xs {
		lines[i] = [2]string{fmt.Sprintf("%012x", x), fmt.Sprintf("%016x", expo(x))}
	}
	want, err := json.MarshalIndent(map[string]any{"exponential": lines}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if flag.Lookup("update").Value.String() == "true" { // the flag of the golden files
		if err := os.WriteFile(vectorsPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(vectorsPath)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: other implementations would fail (-computed +file):\n%s", vectorsPath, diff)
	}
}
