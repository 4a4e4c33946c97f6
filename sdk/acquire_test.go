package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

func TestAcquireGoesWhereRouteSays(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	if _, err := c.Acquire(t.Context(), "k", 1); !errors.Is(err, sdk.ErrNotReady) {
		t.Fatal(err)
	}
	mustGive(t, f, l.ring(nodes(5)...))
	for _, k := range []string{"a", "b", "c"} {
		tk, err := c.Acquire(t.Context(), k, 1)
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := c.Route(k); tk.Route() != r {
			t.Fatalf("%s goes to %s, routed to %s", k, tk.ID(), r.ID())
		}
		if !tk.Done(sdk.Success) || tk.Done(sdk.Success) {
			t.Fatal("the first Done is the one that counts")
		}
	}
	for _, cost := range []int64{0, -1, sdk.MaxCost + 1} {
		if _, err := c.Acquire(t.Context(), "a", cost); !errors.Is(err, sdk.ErrCost) {
			t.Fatalf("cost %d: %v", cost, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Acquire(ended, "a", 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func BenchmarkAcquire(b *testing.B) {
	for _, spec := range []topology.Spec{{Algorithm: topology.Ring, BoundedLoad: 1.25}, {Algorithm: topology.Maglev, BoundedLoad: 1.25}} {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(string(spec.Algorithm)+"/"+fmt.Sprint(n), func(b *testing.B) {
				c, keys := benchClient(b, spec, n)
				ctx := b.Context()
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					t, err := c.Acquire(ctx, keys[i&(len(keys)-1)], 1)
					if err != nil {
						b.Fatal(err)
					}
					t.Done(sdk.Success)
					i++
				}
			})
		}
	}
}
