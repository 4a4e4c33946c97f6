package lalb

import (
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

func TestLaws(t *testing.T) {
	for name, cfg := range map[string]Config{"brpc": {}, "floor": {Floor: 0.1, ColdLatency: time.Second}} {
		t.Run(name, func(t *testing.T) {
			balancetest.Run(t, func(s *balance.Set) (balance.Picker, error) { return New(s, cfg) }, balancetest.Options{Skip: []string{balancetest.Even}})
		})
	}
}
