package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
)

// Edits of one cluster that come while one is being written wait for it and are
// then written together, in the order in which they came, as one transaction
// that raises the generation by as many. Compare-and-swap by each for itself
// would let one of n through a round and cost the others three calls each: 50
// edits that an outage had held up took longer than all of them had time.

// maxBatch is the most edits in one write: as many as a state has notes.
const maxBatch = membership.MaxNotes

// editGrace is how long an editor whose time is up waits for the word of what
// went wrong.
const editGrace = 100 * time.Millisecond

// waiting is an edit that waits for its turn.
type waiting struct {
	ctx   context.Context //nolint:containedctx // of the editor's call, which waits for done
	edit  membership.Edit
	done  chan struct{} // closed when state and err are set
	state membership.State
	err   error
}

func (w *waiting) answer(s membership.State, err error) {
	w.state, w.err = s, err
	close(w.done)
}

// Declare applies an edit by compare-and-swap; see membership.Store.
func (c *cluster) Declare(ctx context.Context, e membership.Edit) (membership.State, error) {
	w := &waiting{ctx: ctx, edit: e, done: make(chan struct{})}
	c.enqueue(w)
	select {
	case <-w.done:
		return w.state, w.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(editGrace)
	defer grace.Stop()
	select {
	case <-w.done:
		return w.state, w.err
	case <-grace.C:
	}
	return membership.State{}, unanswered(ctx.Err())
}

// unanswered is the error of an editor whose context ended with err before etcd
// answered.
func unanswered(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("etcdstore: declare: %w: no answer from etcd in time; the edit may have been made: %w", membership.ErrUnreachable, err)
	}
	return fmt.Errorf("etcdstore: declare: %w", err)
}

// enqueue lets w wait, and starts the writer of this cluster if there is none.
func (c *cluster) enqueue(w *waiting) {
	c.s.editLock.Lock()
	defer c.s.editLock.Unlock()
	queue, running := c.s.edits[c.name]
	c.s.edits[c.name] = append(queue, w)
	if !running {
		go c.writeEdits()
	}
}

// writeEdits writes batches until nobody waits.
func (c *cluster) writeEdits() {
	for {
		c.s.editLock.Lock()
		queue := c.s.edits[c.name]
		if len(queue) == 0 {
			delete(c.s.edits, c.name)
			c.s.editLock.Unlock()
			return
		}
		n := min(len(queue), maxBatch)
		c.s.edits[c.name] = queue[n:]
		c.s.editLock.Unlock()
		c.writeBatch(queue[:n])
	}
}

// writeBatch answers every edit of the batch.
func (c *cluster) writeBatch(batch []*waiting) {
	ctx, cancel := anyOf(batch)
	defer cancel()
	var last try
	for n := 0; ; n++ {
		before, r, err := c.load(ctx)
		if err != nil {
			failAll(batch, err)
			return
		}
		record, _ := etcdkv.DecodeDeclared(r.First(1).Value) // garbage has no name, and may be replaced
		if last.settled(record) {
			return
		}
		if batch = wanted(batch); len(batch) == 0 {
			return
		}
		results, state := applyAll(before, batch)
		if state.Generation == before.Generation { // all are refused
			answerAll(batch, results)
			return
		}
		last = try{batch: batch, results: results, before: record.Edit, edit: nonce()}
		err = c.s.commitDeclared(ctx, c.keys, state, etcdkv.Txn{If: c.fence(r, 1), Confirm: c.keys.Declared()},
			etcdkv.Declared{Edit: last.edit, Recent: record.After()})
		switch {
		case err == nil:
			answerAll(batch, results)
			return
		case errors.Is(err, etcdkv.ErrTooLarge) && len(batch) > 1: // one of them makes it so
			for i := range batch {
				c.writeBatch(batch[i : i+1])
			}
			return
		case !etcdkv.Stale(err) || n == declareTries || !jitter(ctx, n):
			failAll(batch, err)
			return
		}
	}
}

// try is a write that came to a conflict. It may have been made all the same: its
// answer was lost, it was sent again, and others had written since.
type try struct {
	batch        []*waiting
	results      []result
	before, edit string // the names of the write before and of this one
}

// settled answers the try's edits if it was made, or if nobody can tell.
func (t try) settled(now etcdkv.Declared) bool {
	if t.edit == "" {
		return false
	}
	made, sure := now.Made(t.edit, t.before)
	switch {
	case made:
		answerAll(t.batch, t.results)
	case !sure:
		failAll(t.batch, fmt.Errorf("%w: many edits came between; this one may have been made", etcdkv.ErrUnreachable))
	}
	return made || !sure
}

// anyOf returns a context that lives as long as one of the editors waits.
func anyOf(batch []*waiting) (context.Context, context.CancelFunc) {
	if len(batch) == 1 {
		return context.WithCancel(batch[0].ctx)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(batch[0].ctx))
	left := new(atomic.Int64)
	left.Store(int64(len(batch)))
	stops := make([]func() bool, len(batch))
	for i, w := range batch {
		stops[i] = context.AfterFunc(w.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// wanted leaves out the edits that nobody waits for any more: nothing of them
// has been written.
func wanted(batch []*waiting) []*waiting {
	var kept []*waiting
	for _, w := range batch {
		if err := w.ctx.Err(); len(batch) > 1 && err != nil {
			w.answer(membership.State{}, translate("declare", err))
		} else {
			kept = append(kept, w)
		}
	}
	return kept
}

// result is what becomes of one edit once its batch is written.
type result struct {
	state membership.State
	err   error
}

// applyAll applies the edits one after another and returns what becomes of each,
// and the state after the last. One that is refused because of another before it
// may be told only when that one is written.
func applyAll(s membership.State, batch []*waiting) ([]result, membership.State) {
	results := make([]result, len(batch))
	for i, w := range batch {
		next, err := s.Apply(w.edit)
		if err == nil {
			s = next
		}
		results[i] = result{next, translate("declare", err)}
	}
	return results, s
}

func answerAll(batch []*waiting, results []result) {
	for i, w := range batch {
		w.answer(results[i].state, results[i].err)
	}
}

// failAll answers all with err; an editor whose own time was up, which is why the
// batch was given up, is told that.
func failAll(batch []*waiting, err error) {
	for _, w := range batch {
		if own := w.ctx.Err(); own != nil && errors.Is(err, context.Canceled) {
			w.answer(membership.State{}, unanswered(own))
			continue
		}
		w.answer(membership.State{}, translate("declare", err))
	}
}
