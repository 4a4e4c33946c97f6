package storetest_test

import (
	"testing"

	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/membership/storetest"
)

// A store's test runs the suite on a fresh store for each of its parts.
func Example() {
	_ = func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			s := memstore.New()
			return storetest.Harness{Directory: s, Elector: s, Other: s, OtherElector: s,
				Depose: func(_ *testing.T, cluster string) { s.Depose(cluster) }}
		})
	}
}
