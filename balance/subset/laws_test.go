package subset

import (
	"testing"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

func TestApertureLaws(t *testing.T) {
	// With all nodes in the window: the laws count on everybody getting picks.
	cfg := ApertureConfig{Min: 100, Errors: balance.ErrorLoad{Each: 10}}
	balancetest.Run(t, func(s *balance.Set) (balance.Picker, error) { return NewAperture(s, cfg) }, balancetest.Options{})
}
