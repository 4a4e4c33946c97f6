package sdk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/shardd/shardd/topology"
)

// WithSnapshot keeps the newest accepted topology in the file at path, so that a
// client that starts while its source is out of reach routes at once by what the
// process before held (default "": no file). The directory must exist.
//
// The client reads the file before it watches its source, presents what it found
// to the source, and goes on from there under the rule of versions: a file that
// is newer than the server is kept and waited for, and deleting it is the way
// back. A file that is damaged or written by a later release is reported
// (State.Snapshot, Hooks.OnProblem), ignored, and replaced by the next topology;
// a file of another cluster than the pinned one is refused with ErrCluster and
// left alone, and nothing is saved. The file pins the cluster, unless
// WithClusterID does.
//
// A topology is saved away from the lookups and the source, at most one a
// second, the newest wins, and Close saves the last: to a file beside path,
// fsynced, renamed, and the directory fsynced. A failure is in State.Snapshot
// and tried again every 10 s; it harms nothing else. The file's time of
// modification says, to the minute, when a source last confirmed the topology.
//
// Give each client a path of its own: two that share one overwrite each other's.
// The format is that of topology.MarshalSaved, which carries its digest.
func WithSnapshot(path string) Option { return func(o *options) { o.snapshot = path } }

// Origin is where the topology that a client holds came from.
type Origin uint8

// The origins.
const (
	OriginNone     Origin = iota // nothing is held
	OriginSource                 // brought or confirmed by the source
	OriginSnapshot               // read from the snapshot file, and not confirmed yet
)

// String returns "none", "source" or "snapshot".
func (o Origin) String() string {
	switch o {
	case OriginSource:
		return "source"
	case OriginSnapshot:
		return "snapshot"
	}
	return "none"
}

// SnapshotState is how a client fares with its snapshot file.
type SnapshotState struct {
	Saved   topology.Ref // what the file holds; zero = nothing yet
	SavedAt time.Time    // the file's time of modification
	// Problem is why the file could not be used at the start, or not be
	// written since; nil = none. A later save that succeeds clears it.
	Problem error
}

const (
	savePause  = time.Second      // at least between two saves
	saveRetry  = 10 * time.Second // after a save that failed
	touchEvery = time.Minute      // how exact the time of modification is
)

// saver writes the snapshot file in a goroutine of its own. A nil saver does
// nothing.
type saver struct {
	path string
	wake chan struct{} // there may be something to do
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	barred  bool               // the file is another cluster's
	next    *topology.Topology // newest
	seen    time.Time          // when a source last confirmed next
	saved   topology.Ref       // what the file holds
	savedAt time.Time          // its time of modification
}

func (c *Client) startSaver(path string) {
	if path == "" {
		return
	}
	c.saver = &saver{path: path, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go c.save()
}

// wait waits until the last save is done, once the client is closed.
func (v *saver) wait() {
	if v != nil {
		<-v.done
	}
}

// keep has t saved, or its file dated, if that is due.
func (v *saver) keep(t *topology.Topology, now time.Time) {
	if v == nil || t == nil {
		return
	}
	v.mu.Lock()
	v.next, v.seen = t, now
	due := t.Ref() != v.saved || now.Sub(v.savedAt) >= touchEvery
	v.mu.Unlock()
	if !due {
		return
	}
	select {
	case v.wake <- struct{}{}:
	default: // it has not looked since the last call
	}
}

// save is the saver's goroutine.
func (c *Client) save() {
	defer close(c.saver.done)
	for {
		select {
		case <-c.closed:
			_ = c.saveOnce()
			return
		case <-c.saver.wake:
		}
		for c.saveOnce() != nil {
			if !c.savePause(saveRetry) {
				return
			}
		}
		if !c.savePause(savePause) {
			return
		}
	}
}

// savePause waits for d, or saves for the last time and returns false.
func (c *Client) savePause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.closed:
		_ = c.saveOnce() // State says how that went
		return false
	}
}

// saveOnce makes the file hold the newest topology, and tells State.
func (c *Client) saveOnce() error {
	v := c.saver
	v.mu.Lock()
	t, seen, saved, savedAt, barred := v.next, v.seen, v.saved, v.savedAt, v.barred
	v.mu.Unlock()
	if t == nil || barred || t.Ref() == saved && seen.Equal(savedAt) {
		return nil
	}
	var err error
	if t.Ref() == saved {
		err = os.Chtimes(v.path, time.Time{}, seen)
	}
	if t.Ref() != saved || errors.Is(err, fs.ErrNotExist) {
		err = writeSaved(v.path, t, seen)
	}
	if err == nil {
		v.mu.Lock()
		v.saved, v.savedAt = t.Ref(), seen
		v.mu.Unlock()
	}
	c.noteSaved(t, seen, err)
	return err
}

func (c *Client) noteSaved(t *topology.Topology, at time.Time, err error) {
	c.mu.Lock()
	first := c.state.Snapshot.Problem == nil
	c.state.Snapshot.Problem = nil
	if err != nil {
		err = fmt.Errorf("sdk: snapshot: version %s is not saved: %w", t.Version(), err)
		c.state.Snapshot.Problem = err
	} else {
		c.state.Snapshot.Saved, c.state.Snapshot.SavedAt = t.Ref(), at
	}
	c.mu.Unlock()
	switch {
	case err != nil && first:
		c.logger.Warn("snapshot cannot be written; a restart without the source would find an older one", "error", err)
	case err != nil:
		c.logger.Debug("snapshot cannot be written still", "error", err)
	default:
		c.logger.Debug("snapshot written", "path", c.saver.path, "version", t.Version())
	}
}

// loadSnapshot takes what the file holds. It runs before the source is watched.
func (c *Client) loadSnapshot() {
	if c.saver == nil {
		return
	}
	t, at, err := readSaved(c.saver.path)
	if errors.Is(err, fs.ErrNotExist) {
		c.logger.Debug("no snapshot yet", "path", c.saver.path)
		return
	}
	if err != nil {
		err = fmt.Errorf("sdk: snapshot %s is ignored: %w", c.saver.path, err)
		c.problem(err)
	} else {
		if now := time.Now(); at.After(now) {
			at = now
		}
		c.saver.found(t.Ref(), at)
		err = c.consider(t, at)
	}
	if err == nil || errors.Is(err, ErrClosed) {
		return
	}
	c.saver.refused(errors.Is(err, ErrCluster))
	c.mu.Lock()
	c.state.Snapshot.Problem = err
	c.mu.Unlock()
}

// found notes what the file holds.
func (v *saver) found(ref topology.Ref, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.saved, v.savedAt = ref, at
}

// refused notes that the file's topology is of no use here; barred: nor is it
// ours to overwrite.
func (v *saver) refused(barred bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.saved, v.savedAt, v.barred = topology.Ref{}, time.Time{}, barred
}
