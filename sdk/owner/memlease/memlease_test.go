package memlease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/sdk/owner/memlease"
	"github.com/shardd/shardd/topology"
)

// TestLease: a lease ends by itself, and then belongs to nobody or to another.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := memlease.New(), t.Context()
		l, err := s.Take(ctx, "a", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(ctx, "a", time.Second); !errors.Is(err, owner.ErrTaken) {
			t.Errorf("taken twice: %v", err)
		}
		time.Sleep(900 * time.Millisecond)
		if err := l.Renew(ctx); err != nil {
			t.Error(err)
		}
		s.Away("a", true)
		if err := l.Renew(ctx); err == nil || errors.Is(err, owner.ErrLost) {
			t.Errorf("away: %v", err)
		}
		s.Away("a", false)
		time.Sleep(time.Second)
		_, _, read := l.Records(ctx)
		for _, err := range []error{l.Renew(ctx), l.Settle(ctx, topology.Ref{}), l.End(ctx), read} {
			if !errors.Is(err, owner.ErrLost) {
				t.Errorf("run out: %v", err)
			}
		}
		if _, err := s.Take(ctx, "a", time.Second); err != nil {
			t.Error(err)
		}
	})
}

func Example() {
	leases := memlease.New() // for owner.New, in tests
	lease, err := leases.Take(context.Background(), "shard-1", 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	all, revision, err := lease.Records(context.Background())
	fmt.Println(len(all), revision, err)
	// Output: 1 1 <nil>
}
