package rendezvous_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/shardd/shardd/keyhash"
)

// Law: the shares of a sample vary as if every key drew its owner at random.
func TestBalanceLaw(t *testing.T) {
	const sets, nodes, keys = 64, 50, 20_000
	hs := hashes(keys)
	for form := range both(t, nil, nil) {
		var cvs float64
		for s := range sets {
			names := map[string]uint32{}
			for i := range nodes {
				names[fmt.Sprintf("10.%d.0.%d:11211", s, i)] = 1
			}
			p, _ := set(t, names)
			// The keys of a table are its slots.
			samples, locate := keys, func(i int) int { return p[form].Locate(hs[i]) }
			if form == "table" {
				samples, locate = 1<<12, func(i int) int { return p[form].Locate(uint64(i) << 52) }
			}
			count := make([]float64, nodes)
			for i := range samples {
				count[locate(i)]++
			}
			cvs += cv(count) / math.Sqrt(float64(nodes-1)/float64(samples)) / sets
		}
		// The mean cv of a multinomial sample of 50 is 0.995 of the root of its
		// mean square; over 64 sets it varies by 0.013.
		if math.Abs(cvs-0.995) > 0.05 {
			t.Errorf("%s: cv %.3f of multinomial, want 1 within 5 %%", form, cvs)
		}
	}
}

// Law: the share of a node is its weight over the sum of the weights.
func TestWeightLaw(t *testing.T) {
	const keys = 200_000
	hs := hashes(keys)
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, weights := range [][]uint32{
		{1, 1, 2, 3, 5, 8, 13, 0},
		{8, 7, 6, 5, 4, 3, 2, 1},
		{1 << 31, 1 << 31, 1 << 30, 1 << 29, 3 << 28, 5 << 28, math.MaxUint32, 7 << 27},
	} {
		sum := 0.0
		for _, w := range weights {
			sum += float64(w)
		}
		count := make([]float64, len(ids))
		hrw := mustNew(t, ids, weights)
		for _, h := range hs {
			count[hrw.Locate(h)]++
		}
		chi2 := 0.0
		for i, w := range weights {
			if w == 0 {
				if count[i] != 0 {
					t.Errorf("%v: %s has weight 0 and %v keys", weights, ids[i], count[i])
				}
				continue
			}
			want := keys * float64(w) / sum
			chi2 += (count[i] - want) * (count[i] - want) / want
		}
		if chi2 > 24.3 { // 7 degrees of freedom: one in a thousand
			t.Errorf("%v: chi square %.1f of shares %v", weights, chi2, count)
		}
	}
}

// Law: what any change of weights moves is the closed form for exponential
// draws (Moulton and Jiang 2018, "Maximally Consistent Sampling and the Jaccard
// Index of Probability Distributions"): a key stays with probability
// sum_i 1 / sum_j max(w_j/w_i, v_j/v_i).
func TestMovementFormula(t *testing.T) {
	const keys = 200_000
	hs := hashes(keys)
	ids := []string{"a", "b", "c", "d", "e", "f"}
	for _, c := range []struct{ w, v []uint32 }{
		{[]uint32{1, 1, 1, 1, 1, 0}, []uint32{1, 1, 1, 1, 1, 1}},
		{[]uint32{1, 1, 1, 1, 1, 0}, []uint32{0, 1, 1, 1, 1, 1}},
		{[]uint32{1, 2, 3, 4, 5, 6}, []uint32{6, 5, 4, 3, 2, 1}},
		{[]uint32{10, 20, 30, 40, 50, 60}, []uint32{10, 20, 30, 40, 50, 120}},
	} {
		before, after := mustNew(t, ids, c.w), mustNew(t, ids, c.v)
		stay := 0.0
		for i := range ids {
			if c.w[i] == 0 || c.v[i] == 0 {
				continue
			}
			sum := 0.0
			for j := range ids {
				sum += max(float64(c.w[j])/float64(c.w[i]), float64(c.v[j])/float64(c.v[i]))
			}
			stay += 1 / sum
		}
		stayed := 0.0
		for _, h := range hs {
			if before.Locate(h) == after.Locate(h) {
				stayed++
			}
		}
		if sd := math.Sqrt(stay * (1 - stay) / keys); math.Abs(stayed/keys-stay) > 4*sd {
			t.Errorf("%v to %v: %.4f stay, want %.4f +- %.4f", c.w, c.v, stayed/keys, stay, 4*sd)
		}
	}
}

// Law: the first and the second of a key's order are independent draws.
func TestPairsLaw(t *testing.T) {
	const nodes, keys = 8, 100_000
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	hrw := mustNew(t, ids, []uint32{1, 1, 1, 1, 1, 1, 1, 1})
	var pairs [nodes][nodes]float64
	for _, h := range hashes(keys) {
		r := hrw.AppendReplicas(nil, h, 2)
		pairs[r[0]][r[1]]++
	}
	chi2, want := 0.0, keys/float64(nodes*(nodes-1))
	for i := range pairs {
		for j, n := range pairs[i] {
			if i != j {
				chi2 += (n - want) * (n - want) / want
			}
		}
	}
	if chi2 > 93.2 { // 55 degrees of freedom: one in a thousand
		t.Errorf("chi square of the pairs %.1f", chi2)
	}
}

// A hash of 16 bits is spread as well as one of 64, up to its number of values.
func TestNarrowHash(t *testing.T) {
	const nodes = 20
	f, err := keyhash.New(keyhash.CRC16, "{}")
	if err != nil {
		t.Fatal(err)
	}
	hs := slices.Collect(f.Values())
	ratio := 0.0
	const sets = 32
	for s := range sets {
		names := map[string]uint32{}
		for i := range nodes {
			names[fmt.Sprintf("redis-%d-%d", s, i)] = 1
		}
		p, _ := set(t, names)
		count := make([]float64, nodes)
		for _, h := range hs {
			count[p["hrw"].Locate(h)]++
		}
		ratio += cv(count) / math.Sqrt(float64(nodes-1)/float64(len(hs))) / sets
	}
	if math.Abs(ratio-0.987) > 0.1 { // it varies by 0.029
		t.Errorf("cv %.3f of multinomial, want 1 within 10 %%", ratio)
	}
}

// cv is the coefficient of variation.
func cv(count []float64) float64 {
	n, sum, square := float64(len(count)), 0.0, 0.0
	for _, c := range count {
		sum += c
	}
	for _, c := range count {
		square += (c*n/sum - 1) * (c*n/sum - 1) / n
	}
	return math.Sqrt(square)
}
