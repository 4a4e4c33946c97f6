package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/membership/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		s := memstore.New()
		return storetest.Harness{Directory: s, Elector: s, Other: s, OtherElector: s,
			Depose: func(t *testing.T, cluster string) {
				if !s.Depose(cluster) {
					t.Fatalf("nobody leads %s", cluster)
				}
			}, EndLease: expire(s), DeleteLive: expire(s),
			Backup: func(_ *testing.T, cluster string) func(*testing.T) {
				restore := s.Backup(cluster)
				return func(*testing.T) { restore() }
			}}
	})
}

func expire(s *memstore.Store) func(*testing.T, string, string) {
	return func(t *testing.T, cluster, node string) {
		if !s.Expire(cluster, node) {
			t.Fatalf("node %s is not registered", node)
		}
	}
}
