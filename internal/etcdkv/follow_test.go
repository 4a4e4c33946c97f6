package etcdkv_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
)

const poll = 5 * time.Second

// follower runs Follow in a bubble of virtual time and writes down what it gets.
type follower struct {
	mu       sync.Mutex
	got      []string // a reading as text; "=" marks one that was seen already
	problems []string
	slow     time.Duration
	stop     error
	err      error
}

func (f *follower) run(t *testing.T, e *fake, ranges ...etcdkv.Range) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	c := etcdkv.NewWith(e, e, etcdkv.Options{Poll: poll, Rand: func() float64 { return 0.5 }})
	done := make(chan bool)
	last := ""
	go func() {
		defer close(done)
		f.err = c.Follow(ctx, ranges, func(err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.problems = append(f.problems, err.Error())
		}, func(r etcdkv.Reading) error {
			text := text(r)
			if text == last {
				text = "="
			} else {
				last = text
			}
			f.mu.Lock()
			f.got = append(f.got, text)
			f.mu.Unlock()
			time.Sleep(f.slow)
			return f.stop
		})
	}()
	synctest.Wait()
	return func() { cancel(); <-done }
}

func text(r etcdkv.Reading) string {
	var s []string
	for _, items := range r.Items {
		if len(items) == 0 {
			s = append(s, "-")
		}
		for _, i := range items {
			s = append(s, string(i.Value))
		}
	}
	return strings.Join(s, " ")
}

// take returns what came since the last take.
func (f *follower) take() string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Join(f.got, ",")
	f.got = nil
	return s
}

func (f *follower) want(t *testing.T, what, want string) {
	t.Helper()
	if diff := cmp.Diff(want, f.take()); diff != "" {
		t.Errorf("%s: %s (problems: %q)", what, diff, f.told())
	}
}

// told returns the problems so far.
func (f *follower) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.problems)
}

func key(k string) etcdkv.Range { return etcdkv.Range{Key: k} }

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		var f follower
		defer f.run(t, e, key("k"))()
		f.want(t, "nothing there", "-")
		e.put("k", "1")
		f.want(t, "made", "1")
		e.put("other", "x")
		e.put("k", "2")
		f.want(t, "changed", "2")
		e.delete("k")
		f.want(t, "gone", "-")
		e.put("k", "3")
		f.want(t, "made again", "3")
		reads, _ := e.counts()
		time.Sleep(4*poll + poll/2)
		f.want(t, "polls confirm", "=,=,=,=")
		if now, opened := e.counts(); now != reads+4 || opened != 1 {
			t.Errorf("%d readings for four polls, %d watches", now-reads, opened)
		}
	})
}

// TestFollowSeveral: a transaction over several keys is never seen in halves.
func TestFollowSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.put("a", "1")
		e.put("p/1", "x")
		var f follower
		defer f.run(t, e, key("a"), key("b"), etcdkv.Range{Key: "p/", Prefix: true})()
		f.want(t, "first", "1 - x")
		e.put("b", "2")
		f.want(t, "one key", "1 2 x")
		e.put("p/2", "y")
		if got := f.take(); got != "1 2 x y" && got != "1 2 y x" {
			t.Errorf("prefix: %s", got)
		}
		e.delete("a")
		if got := f.take(); !strings.HasPrefix(got, "- 2") {
			t.Errorf("deleted: %s", got)
		}
	})
}

// TestFollowLatestWins: behind a slow caller events are skipped, in order, and
// the last one comes.
func TestFollowLatestWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		f := follower{slow: time.Second}
		defer f.run(t, e, key("k"))()
		for i := range 100 {
			e.put("k", fmt.Sprint(i))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		got := f.take()
		if !strings.HasSuffix(got, "99") || strings.Count(got, ",") > 4 {
			t.Errorf("got %s", got)
		}
	})
}

// TestFollowStreamEnds: compaction, cancellation and a closed channel lead to a
// fresh reading, deletes included, without a busy loop (field case watch-01).
func TestFollowStreamEnds(t *testing.T) {
	for name, resp := range map[string]clientv3.WatchResponse{"compacted": compacted, "cancelled": {Canceled: true}, "closed": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFake()
				e.put("k", "1")
				e.put("gone", "x")
				var f follower
				defer f.run(t, e, key("k"), key("gone"))()
				f.want(t, "first", "1 x")
				e.set(func() { e.silent = true })
				e.put("k", "2")
				e.delete("gone")
				e.set(func() { e.silent, e.compacted = false, e.rev-1 })
				f.want(t, "silent", "")
				e.fail(resp)
				time.Sleep(time.Second / 2)
				f.want(t, "read anew", "2 -")
				e.put("k", "3")
				f.want(t, "it goes on", "3 -")
				if len(f.told()) == 0 {
					t.Error("nothing was told")
				}
			})
		})
	}
}

// TestFollowCompactsBetween: compaction between reading and watching.
func TestFollowCompactsBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.put("k", "1")
		f := follower{slow: time.Second} // between the two
		defer f.run(t, e, key("k"))()
		e.put("k", "2")
		e.put("k", "3")
		e.set(func() { e.compacted = e.rev })
		time.Sleep(3 * time.Second)
		e.put("k", "4")
		time.Sleep(2 * time.Second)
		f.want(t, "all", "1,3,4")
	})
}

// TestFollowBusyLoop: a watch that fails at once, again and again, costs less
// than ten readings a second.
func TestFollowBusyLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.set(func() { e.compacted = 1 << 40 })
		var f follower
		defer f.run(t, e, key("k"))()
		time.Sleep(30 * time.Second)
		if reads, _ := e.counts(); reads > 60 {
			t.Errorf("%d readings in 30 s", reads)
		}
	})
}

// TestFollowSilent: a stream that tells nothing is noticed by the poll, and a
// new one is opened.
func TestFollowSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.put("k", "1")
		var f follower
		defer f.run(t, e, key("k"))()
		f.want(t, "first", "1")
		e.set(func() { e.silent = true })
		e.put("k", "2")
		e.set(func() { e.silent = false; e.watches = nil }) // the old stream stays silent
		f.want(t, "silent", "")
		time.Sleep(poll + time.Second)
		f.want(t, "the poll finds it", "2,=")
		e.put("k", "3")
		f.want(t, "on the new stream", "3")
		if _, opened := e.counts(); opened != 2 {
			t.Errorf("%d watches", opened)
		}
	})
}

// TestFollowDoubted: the stream after a silent one may be on the same frozen
// member; until it tells something the polls behind it are quicker.
func TestFollowDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.put("k", "1")
		var f follower
		defer f.run(t, e, key("k"))()
		f.want(t, "first", "1")
		e.set(func() { e.silent = true })
		e.put("k", "2")
		time.Sleep(poll + time.Second)
		if got := f.take(); !strings.HasPrefix(got, "2") {
			t.Fatalf("the poll found %q", got)
		}
		for _, v := range []string{"3", "4"} { // every new stream is silent, too
			e.put("k", v)
			time.Sleep(1500 * time.Millisecond)
			if got := f.take(); !strings.Contains(got, v) {
				t.Errorf("%s is not found: %q", v, got)
			}
		}
		e.set(func() { e.silent = false })
		time.Sleep(2 * time.Second)
		e.put("k", "5") // may be on a stream opened while all were silent
		time.Sleep(1500 * time.Millisecond)
		f.take()
		e.put("k", "6")
		e.put("k", "7")
		before, _ := e.counts()
		time.Sleep(20 * time.Second)
		if after, _ := e.counts(); after-before > 6 {
			t.Errorf("%d readings in 20 s behind a stream that tells", after-before)
		}
	})
}

// TestFollowWentBack: after a restore the watch stays silent until the old
// revision is reached; the poll sees the lower one. Also where the revision of
// the backup is above that at which the watch began.
func TestFollowWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.put("k", "1")
		var f follower
		defer f.run(t, e, key("k"))()
		e.put("k", "2")
		f.want(t, "first", "1,2")
		var backup map[string]*mvccpb.KeyValue
		var rev int64
		e.set(func() { backup, rev = maps.Clone(e.kvs), e.rev })
		e.put("k", "3")
		f.want(t, "before", "3")
		e.restore(rev, backup)
		time.Sleep(poll + time.Second)
		f.want(t, "after", "2")
		e.put("k", "3b")
		f.want(t, "the other history", "3b")
		if len(f.told()) == 0 || !strings.Contains(f.told()[0], "went back") {
			t.Errorf("problems %q", f.told())
		}
	})
}

// TestFollowForked: another history has reached the same revision: the values
// tell.
func TestFollowForked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.put("k", "1")
		var f follower
		defer f.run(t, e, key("k"))()
		f.want(t, "before", "1")
		e.restore(e.rev, map[string]*mvccpb.KeyValue{"k": {Key: []byte("k"), Value: []byte("1b"), ModRevision: e.rev, CreateRevision: e.rev}})
		time.Sleep(poll + time.Second)
		f.want(t, "after", "1b,=")
	})
}

// TestFollowDown: while etcd is away nothing is delivered and no reading is
// made more often than it must; then the newest comes.
func TestFollowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.put("k", "1")
		e.set(func() { e.down = true })
		var f follower
		defer f.run(t, e, key("k"))()
		time.Sleep(time.Minute)
		f.want(t, "down", "")
		if reads, _ := e.counts(); reads > 240 || len(f.told()) < 5 {
			t.Errorf("%d readings in a minute, %d problems told", reads, len(f.told()))
		}
		e.set(func() { e.down = false })
		time.Sleep(1500 * time.Millisecond)
		f.want(t, "up", "1")
		e.set(func() { e.down = true })
		time.Sleep(poll + time.Second)
		f.want(t, "a poll that fails", "")
		e.put("k", "2")
		f.want(t, "the stream lives on", "2")
	})
}

func TestFollowStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		f := follower{stop: errors.New("enough")}
		stop := f.run(t, e, key("k"))
		synctest.Wait()
		if !errors.Is(f.err, f.stop) {
			t.Errorf("Follow returned %v", f.err)
		}
		stop()
		var g follower
		g.run(t, e, key("k"))()
		if !errors.Is(g.err, context.Canceled) {
			t.Errorf("Follow returned %v", g.err)
		}
	})
}
