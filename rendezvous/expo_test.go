package rendezvous

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

const precision = 160

// bigLn is ln(a/b) for 0 < a <= b: 2 artanh((a-b)/(a+b)) after halving b.
func bigLn(a, b *big.Int) *big.Float {
	halvings := 0
	for a, b = new(big.Int).Set(a), new(big.Int).Set(b); new(big.Int).Lsh(a, 1).Cmp(b) < 0; halvings++ {
		a.Lsh(a, 1)
	}
	ln := artanh2(new(big.Int).Sub(a, b), new(big.Int).Add(a, b))
	two := artanh2(big.NewInt(1), big.NewInt(3)) // ln 2
	return ln.Sub(ln, two.Mul(two, float(int64(halvings))))
}

// artanh2 is twice the area tangent of a/b, by its series.
func artanh2(a, b *big.Int) *big.Float {
	z := new(big.Float).SetPrec(precision).Quo(float(0).SetInt(a), float(0).SetInt(b))
	square := float(0).Mul(z, z)
	sum, power := float(0), float(0).Set(z)
	for k := int64(1); k < 2*precision; k += 2 {
		sum.Add(sum, float(0).Quo(power, float(k)))
		power.Mul(power, square)
	}
	return sum.Mul(sum, float(2))
}

func float(i int64) *big.Float { return new(big.Float).SetPrec(precision).SetInt64(i) }

// units is x in units of 2^-58.
func units(x *big.Float) *big.Float { return new(big.Float).SetPrec(precision).SetMantExp(x, 58) }

func round(x *big.Float) uint64 {
	u, _ := new(big.Float).Add(x, big.NewFloat(0.5)).Uint64()
	return u
}

func TestLogTable(t *testing.T) {
	two := artanh2(big.NewInt(1), big.NewInt(3))
	if got := round(two.SetMantExp(two, 64)); got != ln2 {
		t.Errorf("ln2 is %#x, should be %#x", uint64(ln2), got)
	}
	for i := int64(256); i <= 512; i++ {
		want := bigLn(big.NewInt(i), big.NewInt(512))
		if got := round(units(want.Neg(want))); got != negLog[i-256] {
			t.Errorf("negLog[%d] is %#x, should be %#x", i-256, negLog[i-256], got)
		}
	}
}

// expo is within 4 units of the logarithm, and 1000 units apart for different x.
func TestExpoIsNearTheLogarithm(t *testing.T) {
	worst := 0.0
	check := func(x uint64) {
		u := new(big.Int).SetUint64(1<<49 - 2*x - 1)
		want := units(bigLn(u, big.NewInt(1<<49)))
		diff := want.Add(want, new(big.Float).SetPrec(precision).SetUint64(expo(x)))
		d, _ := diff.Float64()
		worst = max(worst, math.Abs(d))
	}
	for i, x := range borders() {
		if i%4 == 0 {
			check(x)
		}
	}
	for i := range uint64(1000) {
		check(mix(i) >> 16)
		check(mix(i) >> (17 + i%47)) // small ones decide
	}
	if worst > 4 {
		t.Errorf("up to %.2f units away from the logarithm, want 4", worst)
	}
}

func TestExpoAscends(t *testing.T) {
	check := func(x uint64) {
		if x+1 < 1<<48 && expo(x+1) < expo(x)+1000 {
			t.Errorf("expo(%#x) = %#x, expo(%#x) = %#x", x, expo(x), x+1, expo(x+1))
		}
	}
	for _, x := range borders() {
		for d := range uint64(4) {
			check(x + d)
			check(max(x, d) - d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Uint64Range(0, 1<<48-2).Draw(t, "x")
		if expo(x+1) < expo(x)+1000 {
			t.Fatalf("expo(%#x) = %#x, expo(%#x) = %#x", x, expo(x), x+1, expo(x+1))
		}
	})
}

// borders are the x where expo goes to the next entry of its table.
func borders() []uint64 {
	all := []uint64{0, 1, 1<<48 - 1}
	for k := range 48 {
		for i := uint64(256); i <= 512; i++ {
			if u := i << 40 >> k; u < 1<<49 {
				all = append(all, (1<<49-1-u)/2)
			}
		}
	}
	return all
}

// limit may let too much through, never too little.
func TestLimitLaw(t *testing.T) {
	// 2^58 times 64 is 2^64: a limit beyond every draw.
	if got := (score{e: 1<<58 - 1, weight: 1}).limit(64); got != math.MaxUint64 {
		t.Errorf("limit %#x, want none", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.Uint64Range(1, math.MaxUint32)
		best := score{e: expo(rapid.Uint64Range(0, 1<<48-1).Draw(t, "x")), weight: weight.Draw(t, "weight"), index: math.MaxInt32}
		w := weight.Draw(t, "other weight")
		limit := best.limit(w)
		if limit == math.MaxUint64 {
			return
		}
		for _, x := range []uint64{limit >> 16, limit>>16 + 1, 1<<48 - 1} {
			if other := (score{expo(x), w, 0}); other.less(best) {
				t.Fatalf("x = %#x of weight %d comes before %+v", x, w, best)
			}
		}
	})
}

// Equal draws go to the first of the class, wherever the groups of four end.
func TestLowestOrdersTies(t *testing.T) {
	for n := 1; n <= 13; n++ {
		for first := range n {
			for second := first; second < n; second++ {
				seeds := make([]uint64, n)
				for i := range seeds {
					seeds[i] = 1 << 40 // of a greater draw
				}
				seeds[first], seeds[second] = 1, 1
				const h, g = 0, 1 << 20 // a draw is its seed times g
				least := lowest(seeds, h, g, math.MaxUint64)
				if got := least & positionBits; got != uint64(first) {
					t.Errorf("%d draws, the least at %d and %d: got %d", n, first, second, got)
				}
				if got := lowest(seeds, h, g, 1<<20); got != 1<<20 {
					t.Errorf("%d draws, none below the limit: got %#x", n, got)
				}
			}
		}
	}
}
