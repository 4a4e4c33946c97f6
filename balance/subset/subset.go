package subset

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/internal/splitmix"
)

// Deterministic returns the indices of client's subset of k out of n nodes, in
// shuffled order; all clients must number the nodes alike (sort them by id).
// client is the client's number, 0 or more: give them out without gaps, the
// smallest free one first (see Numbers), since whole rounds are what is even. k
// of n or more returns all nodes. O(n).
//
// The shuffle is frozen: Fisher and Yates by SplitMix64 seeded with the round. A
// change of n shuffles everything anew and changes nearly all subsets; a client
// that keeps its number keeps its subset as long as n stays.
func Deterministic(n, k, client int) ([]int, error) {
	if n < 0 || k < 1 || client < 0 {
		return nil, balance.Invalidf("subset: %d of %d nodes for client %d; sizes must be positive and the number not negative", k, n, client)
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if k >= n {
		return all, nil
	}
	subsets := n / k
	seed := splitmix.Source(client / subsets) // the round
	splitmix.Shuffle(&seed, all)
	at := client % subsets * k
	return all[at : at+k : at+k], nil
}

// Random returns the indices of the k ids with the smallest xxh64(id, seed), by
// hash; ties go to the smaller id. The seed is the client's own. Fewer than k
// ids return all. O(n log n).
func Random(ids []string, k int, seed uint64) ([]int, error) {
	if k < 1 {
		return nil, balance.Invalidf("subset: a subset of %d; give 1 or more", k)
	}
	hash := make([]uint64, len(ids))
	order := make([]int, len(ids))
	d := xxhash.NewWithSeed(seed)
	for i, id := range ids {
		order[i] = i
		d.ResetWithSeed(seed)
		_, _ = d.WriteString(id) // never fails
		hash[i] = d.Sum64()
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(hash[a], hash[b]), cmp.Compare(ids[a], ids[b]))
	})
	return order[:min(k, len(order))], nil
}
