package jump_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/jump"
)

// One node has nearly all of a million buckets, so that the second replica comes
// by the completion for most keys: the rule of AppendReplicas word by word, and a
// plan asks that many times over (10 ms each would be ten minutes).
func TestOneNodeHasNearlyAll(t *testing.T) {
	ids, weights := names(7)
	weights[3], weights[1] = 1_000_000, 0
	b := mustBuild(t, ids, weights, 1)
	for _, v := range variants {
		table := mustNew(t, 7, b, v)
		dst := make([]int, 0, 8)
		for i, h := range hashes(5, 5000) {
			dst = table.AppendReplicas(dst[:0], h, 6)
			if dst = dst[:3]; i >= 3 {
				continue
			}
			if want := orderByRule(b, v, h)[:3]; !slices.Equal(dst, want) {
				t.Errorf("variant %d: hash %#x has replicas %v, want %v", v, h, dst, want)
			}
		}
	}
}

// orderByRule is the whole order of a key, slowly.
func orderByRule(b jump.Buckets, v jump.Variant, h uint64) (order []int) {
	draw := map[jump.Variant]func(uint64, int) int{jump.Classic: jump.Hash, jump.Back: jump.BackHash}[v]
	add := func(o uint16) {
		if o != hole && !slices.Contains(order, int(o)) {
			order = append(order, int(o))
		}
	}
	for k, i := h, 0; i < jump.Draws; i++ {
		add(b.Owner[draw(k, len(b.Owner))])
		k = splitmix.Mix(k + splitmix.Golden)
	}
	type bucket struct {
		score uint64
		at    int
	}
	best := map[uint16]bucket{}
	for i, o := range b.Owner {
		mine := bucket{splitmix.Mix(h ^ splitmix.Mix(uint64(i+1)*splitmix.Golden)), i}
		if was, ok := best[o]; !ok || mine.score > was.score {
			best[o] = mine
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(best), func(x, y uint16) int {
		return cmp.Or(cmp.Compare(best[y].score, best[x].score), cmp.Compare(best[x].at, best[y].at))
	}) {
		add(o)
	}
	return order
}
