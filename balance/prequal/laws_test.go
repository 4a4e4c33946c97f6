package prequal

import (
	"testing"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

// TestLawsWithoutProbes is the case that no probe is ever answered.
func TestLawsWithoutProbes(t *testing.T) {
	balancetest.Run(t, func(s *balance.Set) (balance.Picker, error) {
		return New(s, Config{Errors: balance.ErrorLoad{Each: 10}})
	}, balancetest.Options{})
}
