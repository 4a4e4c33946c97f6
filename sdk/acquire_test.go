package sdk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shardd/shardd/sdk"
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
