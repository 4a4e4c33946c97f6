package balancetest_test

import (
	"testing"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

// A policy of one's own is put to the laws like this.
func Example() {
	_ = func(t *testing.T) {
		balancetest.Run(t, func(set *balance.Set) (balance.Picker, error) {
			return balance.NewP2C(set, nil)
		}, balancetest.Options{})
	}
}
