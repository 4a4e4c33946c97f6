package filesource_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/filesource"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line publishes versions of one cluster.
type line struct {
	t     testing.TB
	id    topology.ClusterID
	hist  topology.History
	epoch uint64
	table *placement.Table
}

func newLine(t testing.TB) *line {
	return &line{t: t, id: topology.NewClusterID(), hist: topology.NewHistory(), epoch: 1}
}

func (l *line) copy() *line { c := *l; return &c }

func (l *line) next(n int) *topology.Topology {
	l.t.Helper()
	d := topology.Draft{Cluster: "cache", ID: l.id, History: l.hist, Version: topology.Version{Epoch: l.epoch, Seq: 1},
		Spec: topology.Spec{Algorithm: topology.Slots, SlotCount: 64}}
	for i := range n {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("node-%03d", i), Weight: 1})
	}
	if l.table != nil && l.table.Topology().Version().Epoch == l.epoch {
		d.Version.Seq = l.table.Topology().Version().Seq + 1
	}
	table, err := placement.Update(l.table, d)
	if err != nil {
		l.t.Fatal(err)
	}
	l.table = table
	return table.Topology()
}

// world is a client that follows a file, in virtual time.
type world struct {
	t        *testing.T
	path     string
	client   *sdk.Client
	problems atomic.Int32 // reported so far
}

func newWorld(t *testing.T, opts ...filesource.Option) *world {
	w := &world{t: t, path: filepath.Join(t.TempDir(), "cache.topology")}
	src, err := filesource.New(w.path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	w.client, err = sdk.New(src, sdk.WithHooks(sdk.Hooks{
		OnProblem: func(error) { w.problems.Add(1) },
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.client.Close() })
	return w
}

// replace puts b in the file's place, in one step.
func (w *world) replace(b []byte) {
	w.t.Helper()
	next := w.path + ".next"
	err := os.WriteFile(next, b, 0o600)
	if err == nil {
		err = os.Rename(next, w.path)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func saved(t testing.TB, topo *topology.Topology) []byte {
	t.Helper()
	b, err := topo.MarshalSaved()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// holds waits for two looks at the file and checks what came of them.
func (w *world) holds(what string, want *topology.Topology, problem error) {
	w.t.Helper()
	time.Sleep(2100 * time.Millisecond)
	synctest.Wait()
	st := w.client.State()
	if st.Held != want.Ref() || !errors.Is(st.Problem, problem) {
		w.t.Fatalf("%s: on %v, want %v; problem %v, want %v", what, st.Held, want.Ref(), st.Problem, problem)
	}
	if age := w.client.Age(); problem == nil && age > time.Second {
		w.t.Errorf("%s: age %v", what, age)
	}
}

func virtual(t *testing.T, fn func(*testing.T)) { synctest.Test(t, fn) }

func TestNew(t *testing.T) {
	if _, err := filesource.New(""); err == nil {
		t.Fatal("an empty path was taken")
	}
}

// TestFollows: the client follows a file that is replaced, and every look at it
// confirms what it holds.
func TestFollows(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, l := newWorld(t), newLine(t)
		time.Sleep(3 * time.Second)
		if _, err := w.client.Route("k"); !errors.Is(err, sdk.ErrNotReady) || !errors.Is(w.client.State().Problem, os.ErrNotExist) {
			t.Fatalf("%v, %+v", err, w.client.State())
		}
		for n := range 4 {
			v := l.next(n) // at first without nodes
			w.replace(saved(t, v))
			w.holds(fmt.Sprint(n, " nodes"), v, nil)
		}
		if r, err := w.client.Route("k"); err != nil || r.Version().Seq != 4 {
			t.Fatalf("%v, %v", r.Version(), err)
		}
		if st := w.client.State(); st.Taken != 4 || st.Refused != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestBadFile: what cannot be read changes nothing, is reported as long as it
// lasts, and is forgotten when the file is good again (field case sdk-02).
func TestBadFile(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, l := newWorld(t), newLine(t)
		v1 := l.next(5)
		good := saved(t, v1)
		w.replace(good)
		w.holds("good", v1, nil)
		flipped := append([]byte(nil), good...)
		flipped[40] ^= 4
		for name, b := range map[string][]byte{"empty": {}, "cut short": good[:len(good)-1], "longer": append(good[:len(good):len(good)], 0),
			"a bit flipped": flipped, "a cluster file": []byte("cluster: cache\n"), "JSON": []byte("{}")} {
			w.replace(b)
			before := w.problems.Load()
			w.holds(name, v1, topology.ErrCorrupt)
			if w.problems.Load() < before+2 {
				t.Errorf("%s: reported %d times in two looks", name, w.problems.Load()-before)
			}
			w.replace(good)
			w.holds("good again", v1, nil)
		}
		if err := os.Remove(w.path); err != nil {
			t.Fatal(err)
		}
		w.holds("removed", v1, os.ErrNotExist)
		if err := os.Mkdir(w.path, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if w.client.Topology().Ref() != v1.Ref() || w.client.State().Problem == nil {
			t.Fatalf("a directory: %+v", w.client.State())
		}
		if err := os.Remove(w.path); err != nil {
			t.Fatal(err)
		}
		v2 := l.next(6)
		w.replace(saved(t, v2))
		w.holds("back", v2, nil)
	})
}

// TestHalfWritten: a file that is written in place in pieces is taken when it is
// whole, also if its size and date are those of a bad reading.
func TestHalfWritten(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, l := newWorld(t), newLine(t)
		v1, v2 := l.next(5), l.next(4)
		w.replace(saved(t, v1))
		w.holds("first", v1, nil)
		b := saved(t, v2)
		f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		old := time.Now().Add(-time.Hour)
		write := func(at, to int) {
			t.Helper()
			if _, err := f.WriteAt(b[at:to], int64(at)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(w.path, old, old); err != nil {
				t.Fatal(err)
			}
		}
		write(len(b)/2, len(b)) // a hole, then the end: the size is right
		w.holds("half", v1, topology.ErrCorrupt)
		write(0, len(b)/2)
		w.holds("whole", v2, nil)
	})
}

// TestSameDate: a file that is replaced within the grain of its date is read
// again, an old one that looks the same is not.
func TestSameDate(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, l := newWorld(t), newLine(t)
		l.next(5)
		v1, v2 := l.next(5), l.next(5) // of the same size
		overwrite := func(topo *topology.Topology, date time.Time) {
			t.Helper()
			f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE, 0o600)
			if err == nil {
				_, err = f.Write(saved(t, topo))
				err = errors.Join(err, f.Close(), os.Chtimes(w.path, date, date))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(saved(t, v1)) != len(saved(t, v2)) {
			t.Fatal("the test needs two files of one size")
		}
		date := time.Now().Add(time.Second)
		overwrite(v1, date)
		w.holds("first", v1, nil)
		overwrite(v2, date)
		w.holds("same date", v2, nil)

		old := time.Now().Add(-time.Hour)
		overwrite(v2, old)
		w.holds("dated", v2, nil)
		overwrite(v1, old)
		w.holds("nobody changes a file and its date back", v2, nil)
	})
}

// TestInterval: a change is noticed within the interval.
func TestInterval(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, l := newWorld(t, filesource.WithInterval(50*time.Millisecond)), newLine(t)
		synctest.Wait() // one look is over
		v1 := l.next(3)
		w.replace(saved(t, v1))
		time.Sleep(51 * time.Millisecond)
		synctest.Wait()
		if w.client.State().Held != v1.Ref() {
			t.Fatal("not noticed")
		}
	})
}

// TestNeverBack: whatever is put in the file, the client moves only forward
// along its line.
func TestNeverBack(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, l := newWorld(t), newLine(t)
		v1 := l.next(3)
		fork := l.copy()
		v2 := l.next(4)
		fork2, fork3, fork4 := fork.next(1), fork.next(2), fork.next(1)
		_, v4 := l.next(5), l.next(6)
		other := newLine(t).next(9)
		w.replace(saved(t, v1))
		w.holds("first", v1, nil)
		w.replace(saved(t, v2))
		w.holds("second", v2, nil)
		for _, bad := range []struct {
			name string
			file *topology.Topology
			want error
		}{{"older", v1, sdk.ErrOlder}, {"fork", fork2, sdk.ErrForked}, {"fork, next", fork3, sdk.ErrForked},
			{"fork, next but one", fork4, sdk.ErrForked}, {"skipped", v4, sdk.ErrForked}, {"another cluster", other, sdk.ErrCluster}} {
			w.replace(saved(t, bad.file))
			w.holds(bad.name, v2, bad.want)
		}
		l.epoch, l.hist = 2, topology.NewHistory()
		v21 := l.next(3)
		w.replace(saved(t, v21))
		w.holds("next epoch", v21, nil)
	})
}

// TestTrustedWriter: versions may be skipped if the writer is trusted; the rest
// of the rule holds.
func TestTrustedWriter(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, l := newWorld(t, filesource.WithTrustedWriter()), newLine(t)
		v1, v2, _, v4 := l.next(3), l.next(4), l.next(5), l.next(6)
		w.replace(saved(t, v1))
		w.holds("first", v1, nil)
		w.replace(saved(t, v4))
		w.holds("skipped", v4, nil)
		w.replace(saved(t, v2))
		w.holds("older", v4, sdk.ErrOlder)
	})
}

// TestSnapshotOfAnother: the snapshot file of one client is a source for others.
func TestSnapshotOfAnother(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, l := newWorld(t), newLine(t)
		copyOf := filepath.Join(t.TempDir(), "copy")
		src, err := filesource.New(w.path)
		if err != nil {
			t.Fatal(err)
		}
		first, err := sdk.New(src, sdk.WithSnapshot(copyOf))
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		second, err := filesource.New(copyOf)
		if err != nil {
			t.Fatal(err)
		}
		c, err := sdk.New(second)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		v1 := l.next(3)
		w.replace(saved(t, v1))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if c.State().Held != v1.Ref() {
			t.Fatalf("%+v", c.State())
		}
	})
}
