package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/membership"
)

// TestBatchGivenUp: edits whose time is up while their batch is being written are
// told that they may have been made, whichever of the two notices first.
func TestBatchGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var batch []*waiting
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			batch = append(batch, &waiting{ctx: ctx, done: make(chan struct{})})
		}
		ctx, cancel := anyOf(batch)
		defer cancel()
		<-ctx.Done()
		failAll(batch, fmt.Errorf("read: %w", ctx.Err()))
		for _, w := range batch {
			if <-w.done; !errors.Is(w.err, membership.ErrUnreachable) || !errors.Is(w.err, context.DeadlineExceeded) {
				t.Errorf("an edit whose time was up was told: %v", w.err)
			}
		}
	})
}
