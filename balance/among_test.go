package balance

import (
	"errors"
	"testing"
)

// Among few, the cheapest by weight; among equals each alike; who may not be
// picked is passed over.
func TestPickAmong(t *testing.T) {
	set := testSet(t, 1, 1, 1, 1)
	for name, p := range map[string]Among{
		"p2c":   must(NewP2C(set, board{9, 3, 5, 1})),
		"least": must(NewLeastRequest(set, Choices{Cost: board{9, 3, 5, 1}})),
		"scan":  must(NewFullScan(set, board{9, 3, 5, 1})),
		"left":  must(NewGoLeft(set, 2, board{9, 3, 5, 1})),
	} {
		tk, err := p.PickAmong(0, 1, []int{0, 2, 1})
		if err != nil || tk.Index() != 1 || tk.Node().InFlight() != 1 {
			t.Errorf("%s: picked %d, %v", name, tk.Index(), err)
		}
		tk.Done(0, Outcome{Result: Success})
		if _, err := p.PickAmong(0, 1, nil); !errors.Is(err, ErrNoNode) {
			t.Errorf("%s: among nobody: %v", name, err)
		}
	}
	p := must(NewP2C(set, nil))
	counts := make([]int, 4)
	for k := range uint64(30_000) {
		tk, err := p.PickAmong(0, k, []int{3, 0, 1})
		if err != nil {
			t.Fatal(err)
		}
		counts[tk.Index()]++
		tk.Done(0, Outcome{Result: Success})
	}
	for i, n := range counts {
		if want := []int{10_000, 10_000, 0, 10_000}[i]; n < want-400 || n > want+400 {
			t.Errorf("equals: %v", counts)
		}
	}
	down, err := NewSet([]Member{{Node: NewNode("a", 0), Weight: 1, Down: true}, {Node: NewNode("b", 0)}, {Node: NewNode("c", 0), Weight: 1}})
	if err != nil {
		t.Fatal(err)
	}
	p = must(NewP2C(down, nil))
	if tk, err := p.PickAmong(0, 1, []int{0, 1, 2}); err != nil || tk.Index() != 2 {
		t.Errorf("picked %d, %v", tk.Index(), err)
	}
	if _, err := p.PickAmong(0, 1, []int{0, 1}); !errors.Is(err, ErrNoNode) {
		t.Errorf("nobody may be picked: %v", err)
	}
}
