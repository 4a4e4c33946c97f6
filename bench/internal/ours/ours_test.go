package ours

import (
	"slices"
	"testing"

	"github.com/shardd/shardd/internal/floorbench"
)

// Every subject finds the owners that Owner names, moves no key between nodes
// that stay when one comes or goes, and finds its way back.
func TestSubjects(t *testing.T) {
	keys, names := floorbench.Keys(5001), floorbench.Names(20)
	fewer := slices.Delete(slices.Clone(names), 7, 8)
	for _, s := range Subjects() {
		t.Run(s.Name, func(t *testing.T) {
			full, err := s.New(names)
			if err != nil {
				t.Fatal(err)
			}
			less, err := full.With(fewer)
			if err != nil {
				t.Fatal(err)
			}
			again, err := less.With(names)
			if err != nil {
				t.Fatal(err)
			}
			moved := 0
			for _, k := range keys {
				before, without := full.Owner(k), less.Owner(k)
				if before != without {
					moved++
				}
				if before != names[7] && before != without || without == names[7] {
					t.Fatalf("%s: %s, after %s left: %s", k, before, names[7], without)
				}
				if back := again.Owner(k); back != without && back != names[7] {
					t.Fatalf("%s: %s, after %s came back: %s", k, without, names[7], back)
				}
			}
			if moved == 0 {
				t.Error("no key moved")
			}
			if got, want := full.Pass(keys), len(keys)*len(names[0]); got != want {
				t.Errorf("Pass = %d, want %d", got, want)
			}
			if _, err := s.New(nil); err == nil {
				t.Error("no nodes: no error")
			}
		})
	}
}

func TestMoved(t *testing.T) {
	got := moved([]string{"a", "c", "d", "z"}, []string{"b", "c", "e", "z"}, 9)
	if want := []uint16{9, 1, 9, 3}; !slices.Equal(got, want) {
		t.Errorf("moved = %v, want %v", got, want)
	}
}
