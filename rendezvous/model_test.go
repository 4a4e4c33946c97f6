package rendezvous_test

import (
	"math"
	"math/big"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// The mapping by the package comment, with math/big.

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func modelFold(a, b uint64) uint64 {
	p := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
	low := new(big.Int).And(p, new(big.Int).SetUint64(math.MaxUint64))
	return p.Rsh(p, 64).Uint64() ^ low.Uint64()
}

// modelExpo follows the formula word for word.
func modelExpo(x uint64) *big.Int {
	num := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	one := new(big.Int).Lsh(big.NewInt(1), 64)
	m, k := num(1<<49-2*x-1), int64(0)
	for ; m.BitLen() < 64; k++ {
		m.Lsh(m, 1)
	}
	i := new(big.Int).Sub(m, num(1))
	i.Rsh(i, 55).Add(i, num(1))
	r := new(big.Int).Lsh(i, 55)
	r.Sub(r, m).Lsh(r, 9).Quo(r, i)
	mulHigh := func(a, b *big.Int) *big.Int {
		p := new(big.Int).Mul(a, b)
		return p.Rsh(p, 64)
	}
	p := new(big.Int).Quo(one, num(6))
	for j := uint64(5); j >= 2; j-- {
		p = new(big.Int).Add(new(big.Int).Quo(one, num(j)), mulHigh(p, r))
	}
	tail := new(big.Int).Add(r, mulHigh(r, mulHigh(r, p)))
	e := new(big.Int).Mul(big.NewInt(k-15), nearest(2, 1, 64))
	return e.Rsh(e, 6).Add(e, nearest(512, i.Int64(), 58)).Add(e, tail.Rsh(tail, 6))
}

// nearest is ln(a/b) in units of 2^-bits, rounded to the nearest.
func nearest(a, b int64, bits int) *big.Int {
	z := big.NewFloat(0).SetPrec(200).Quo(big.NewFloat(float64(a-b)).SetPrec(200), big.NewFloat(float64(a+b)).SetPrec(200))
	square := new(big.Float).Mul(z, z)
	sum, power := new(big.Float).SetPrec(200), new(big.Float).Set(z)
	for k := 1; k < 200; k += 2 {
		sum.Add(sum, new(big.Float).Quo(power, big.NewFloat(float64(k))))
		power.Mul(power, square)
	}
	sum.SetMantExp(sum, bits+1)
	n, _ := sum.Add(sum, big.NewFloat(0.5)).Int(nil)
	return n
}

func modelOrder(ids []string, weights []uint32, h uint64) []int {
	type number struct {
		e     *big.Int
		w     *big.Int
		index int
	}
	var all []number
	g := modelFold(h, 0x9e3779b97f4a7c15) | 1
	for i, id := range ids {
		if weights[i] > 0 {
			x := modelFold(mix(xxhash.Sum64String(id))^h, g) >> 16
			all = append(all, number{modelExpo(x), big.NewInt(int64(weights[i])), i})
		}
	}
	slices.SortStableFunc(all, func(a, b number) int {
		return new(big.Int).Mul(a.e, b.w).Cmp(new(big.Int).Mul(b.e, a.w))
	})
	var order []int
	for _, n := range all {
		order = append(order, n.index)
	}
	return order
}
