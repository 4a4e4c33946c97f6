package sdk_test

import (
	"errors"
	"testing"

	"github.com/shardd/shardd/sdk"
)

// TestAcquireWithoutNodes: a topology without owners refuses requests.
func TestAcquireWithoutNodes(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	mustGive(t, f, l.ring(nodes(1)...))
	mustGive(t, f, l.ring())
	if _, err := c.Acquire(t.Context(), "k", 1); !errors.Is(err, sdk.ErrNoNodes) {
		t.Errorf("Acquire: %v", err)
	}
	c.Close()
}
