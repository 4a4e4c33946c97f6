package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// savedAt returns what the snapshot file holds.
func savedAt(t *testing.T, path string) *topology.Topology {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	topo, err := topology.UnmarshalSaved(b)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func save(t *testing.T, path string, topo *topology.Topology) {
	t.Helper()
	b, err := topo.MarshalSaved()
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestColdStart: a client that starts without its source routes by what the
// process before held, says so and how old it is, and presents it.
func TestColdStart(t *testing.T) {
	for _, spec := range []topology.Spec{{Algorithm: topology.Ring}, {Algorithm: topology.Maglev, TableSize: 251}} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache.topology")
			l := newLine(t)
			c, f := start(t, sdk.WithSnapshot(path))
			v1, v2 := l.publish(spec, nodes(3)...), l.publish(spec, nodes(4)...)
			mustGive(t, f, v1)
			mustGive(t, f, v2)
			time.Sleep(20 * time.Second)
			mustGive(t, f, nil) // confirmed
			confirmed := time.Now()
			c.Close()
			if got := savedAt(t, path); got.Ref() != v2.Ref() {
				t.Fatalf("the file holds %v", got.Ref())
			}
			time.Sleep(time.Hour)

			c, f = start(t, sdk.WithSnapshot(path))
			if err := c.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			if have := <-f.haves; have != v2.Ref() {
				t.Fatalf("presented %v", have)
			}
			if r, err := c.Route("k"); err != nil || r.Version() != v2.Version() {
				t.Fatalf("%v, %v", r.Version(), err)
			}
			want := sdk.State{Cluster: "cache", Held: v2.Ref(), Nodes: 4, Taken: 1, TakenAt: time.Now(), ConfirmedAt: confirmed,
				Origin: sdk.OriginSnapshot, Snapshot: sdk.SnapshotState{Saved: v2.Ref(), SavedAt: confirmed}}
			if diff := cmp.Diff(want, c.State()); diff != "" {
				t.Fatal(diff)
			}
			if age := c.Age(); age != time.Hour {
				t.Errorf("age %v", age)
			}
			mustGive(t, f, v2)
			if st := c.State(); st.Origin != sdk.OriginSource || st.Taken != 1 || c.Age() != 0 {
				t.Errorf("confirmed: %+v", st)
			}
		})
	}
}

// TestSnapshotAhead: a client whose file is newer than the server keeps it,
// waits, and goes on when the server catches up; what is not of its line stays
// out.
func TestSnapshotAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := newLine(t)
	v1 := l.ring(nodes(3)...)
	fork := l.copy()
	v2, v3 := l.ring(nodes(4)...), l.ring(nodes(5)...)
	save(t, path, v2)
	c, f := start(t, sdk.WithSnapshot(path))
	step := func(offer *topology.Topology, want error, held *topology.Topology) {
		t.Helper()
		if err := f.give(offer); !errors.Is(err, want) || c.Topology().Ref() != held.Ref() {
			t.Fatalf("%v, on %v", err, c.Topology().Ref())
		}
	}
	step(v1, sdk.ErrOlder, v2)
	step(fork.ring(nodes(9)...), sdk.ErrForked, v2)
	step(newLine(t).ring(nodes(9)...), sdk.ErrCluster, v2)
	if st := c.State(); st.Origin != sdk.OriginSnapshot || st.Snapshot.Problem != nil {
		t.Fatalf("%+v", st)
	}
	step(v2, nil, v2)
	step(v3, nil, v3)
	c.Close()
	if got := savedAt(t, path); got.Ref() != v3.Ref() {
		t.Fatalf("the file holds %v", got.Ref())
	}
}

// TestSnapshotRefused: a file that cannot be used is reported and harms nothing.
// What is damaged is replaced; another cluster's file is not.
func TestSnapshotRefused(t *testing.T) {
	l := newLine(t)
	good, theirs := l.ring(nodes(3)...), newLine(t).ring(nodes(2)...)
	whole, _ := good.MarshalSaved()
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	other, _ := theirs.MarshalSaved()
	later := bytes.Replace(whole, []byte("ring/1"), []byte("ring/9"), 1)
	sum := topology.Sum(later[:len(later)-16])
	later = append(later[:len(later)-16], sum[:]...)
	for name, tc := range map[string]struct {
		file []byte
		want error
		kept bool
	}{
		"empty":           {[]byte{}, topology.ErrCorrupt, false},
		"cut short":       {whole[:len(whole)/2], topology.ErrCorrupt, false},
		"a bit flipped":   {flipped, topology.ErrCorrupt, false},
		"something else":  {[]byte("cluster: cache\n"), topology.ErrCorrupt, false},
		"a later release": {later, topology.ErrUnknown, false},
		"another cluster": {other, sdk.ErrCluster, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			if err := os.WriteFile(path, tc.file, 0o600); err != nil {
				t.Fatal(err)
			}
			problems := make(chan error, 10)
			hooks := sdk.Hooks{OnProblem: func(err error) { problems <- err }, OnRefused: func(e *sdk.RefusedError) { problems <- e }}
			c, f := start(t, sdk.WithSnapshot(path), sdk.WithClusterID(l.id), sdk.WithHooks(hooks))
			if have := <-f.haves; !have.IsZero() {
				t.Fatalf("presented %v", have)
			}
			if err := <-problems; !errors.Is(err, tc.want) || !errors.Is(c.State().Snapshot.Problem, tc.want) {
				t.Fatalf("%v, %+v", err, c.State())
			}
			mustGive(t, f, good)
			c.Close()
			if kept := savedAtOrNil(path); tc.kept != (kept != nil && kept.ClusterID() == theirs.ClusterID()) || !tc.kept && kept.Ref() != good.Ref() {
				t.Fatalf("the file holds %v", kept)
			}
			if st := c.State(); tc.kept != (st.Snapshot.Problem != nil) {
				t.Errorf("%+v", st.Snapshot)
			}
		})
	}
}

func savedAtOrNil(path string) *topology.Topology {
	b, _ := os.ReadFile(path)
	topo, _ := topology.UnmarshalSaved(b)
	return topo
}

// TestSnapshotPins: the file of the process before pins the cluster.
func TestSnapshotPins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := newLine(t)
	v1 := l.ring(nodes(3)...)
	save(t, path, v1)
	c, f := start(t, sdk.WithSnapshot(path))
	if err := f.give(newLine(t).ring(nodes(1)...)); !errors.Is(err, sdk.ErrCluster) {
		t.Fatal(err)
	}
	c.Close()
	if got := savedAt(t, path); got.Ref() != v1.Ref() {
		t.Fatalf("the file holds %v", got.Ref())
	}
}

// TestSnapshotRate: many versions cost at most one write a second, and the last
// one is written; nothing else is left in the directory.
func TestSnapshotRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "s")
		l := newLine(t)
		c, f := start(t, sdk.WithSnapshot(path))
		seen := map[topology.Version]bool{}
		var last *topology.Topology
		for i := range 100 {
			last = l.ring(nodes(1 + i%2)...)
			mustGive(t, f, last)
			synctest.Wait()
			seen[savedAt(t, path).Version()] = true
			time.Sleep(50 * time.Millisecond)
		}
		if len(seen) < 4 || len(seen) > 6 {
			t.Errorf("%d of 100 versions in 5 s were written", len(seen))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := savedAt(t, path); got.Ref() != last.Ref() {
			t.Fatalf("the file holds %v", got.Ref())
		}
		stamp := func() time.Time {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return info.ModTime()
		}
		before := stamp()
		for range 50 {
			mustGive(t, f, nil)
			synctest.Wait()
			if !stamp().Equal(before) {
				t.Fatal("the file is dated more often than each minute")
			}
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Second)
		mustGive(t, f, nil)
		synctest.Wait()
		if !stamp().Equal(time.Now()) {
			t.Errorf("dated %v, now is %v", stamp(), time.Now())
		}
		c.Close()
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("files left: %v", files)
		}
	})
}

// TestSnapshotUnwritable: a file that cannot be written is shown, tried again,
// and harms nothing else.
func TestSnapshotUnwritable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "later")
		path := filepath.Join(dir, "s")
		l := newLine(t)
		c, f := start(t, sdk.WithSnapshot(path))
		v1 := l.ring(nodes(3)...)
		mustGive(t, f, v1)
		synctest.Wait()
		if st := c.State(); !errors.Is(st.Snapshot.Problem, os.ErrNotExist) || st.Problem != nil || !strings.Contains(st.Snapshot.Problem.Error(), "1.1") {
			t.Fatalf("%+v", st)
		}
		if _, err := c.Route("k"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if st := c.State(); st.Snapshot.Problem != nil || st.Snapshot.Saved != v1.Ref() || savedAt(t, path).Ref() != v1.Ref() {
			t.Fatalf("%+v", st.Snapshot)
		}
		// Somebody deletes it; the next version brings it back.
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		v2 := l.ring(nodes(4)...)
		mustGive(t, f, v2)
		time.Sleep(2 * time.Second)
		if savedAt(t, path).Ref() != v2.Ref() {
			t.Fatal("not written again")
		}
	})
}

// TestSnapshotIsADirectory: so is a path that is no file.
func TestSnapshotIsADirectory(t *testing.T) {
	c, f := start(t, sdk.WithSnapshot(t.TempDir()))
	mustGive(t, f, newLine(t).ring(nodes(1)...))
	c.Close()
	if c.State().Snapshot.Problem == nil {
		t.Fatal("no problem")
	}
}

// TestRestarts: a client that is restarted after every version, whatever servers
// it meets, only moves forward.
func TestRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := newLine(t)
	var all []*topology.Topology
	for i := range 8 {
		all = append(all, l.ring(nodes(1+i)...))
	}
	newest := 0
	for i, server := range []int{0, 2, 1, 0, 5, 5, 3, 7, 6} {
		c, f := start(t, sdk.WithSnapshot(path))
		_ = f.give(all[server])
		newest = max(newest, server)
		if got := c.Topology().Ref(); got != all[newest].Ref() {
			t.Fatalf("restart %d: on %v, held %v before", i, got, all[newest].Ref())
		}
		c.Close()
	}
}

func ExampleWithSnapshot() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cache.topology")

	client, err := sdk.New(fixed{exampleTopology()}, sdk.WithSnapshot(path))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = client.WaitReady(context.Background())
	client.Close()

	// The next process starts while the servers are down.
	client, err = sdk.New(downSource{}, sdk.WithSnapshot(path))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_ = client.WaitReady(context.Background())
	state := client.State()
	fmt.Println(state.Held.Version, "from the", state.Origin)
	// Output: 1.1 from the snapshot
}

// downSource never answers.
type downSource struct{}

func (downSource) Watch(ctx context.Context, _ topology.Ref, _ func(*topology.Topology) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestSnapshotLink: what a symbolic link points to is replaced, not the link, be it
// there already or not.
func TestSnapshotLink(t *testing.T) {
	dir := t.TempDir()
	for i, target := range []string{filepath.Join(dir, "kept", "one"), filepath.Join("kept", "two")} {
		if err := os.MkdirAll(filepath.Join(dir, "kept"), 0o700); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "link"+strconv.Itoa(i))
		if err := os.Symlink(target, link); err != nil {
			t.Skip(err) // Windows without the right to
		}
		l := newLine(t)
		for n := 2; n < 5; n++ {
			c, f := start(t, sdk.WithSnapshot(link))
			want := l.ring(nodes(n)...)
			mustGive(t, f, want)
			c.Close()
			if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Fatalf("%v, %v", info, err)
			}
			if got := savedAt(t, filepath.Join(dir, "kept", filepath.Base(target))); got.Ref() != want.Ref() {
				t.Errorf("saved: %v", got.Ref())
			}
		}
	}
}
