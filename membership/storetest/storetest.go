// Package storetest is the behaviour that every membership store shares, as a
// test suite: run it on a store and it holds that store to package membership's
// contract (edits by compare-and-swap, fenced publication, kept versions,
// watches, elections, sizes).
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Harness is one empty store under test.
type Harness struct {
	Directory membership.Directory
	Elector   membership.Elector
	// Other is what a second process sees of the same store.
	Other          membership.Directory
	OtherElector   membership.Elector
	Depose         func(t *testing.T, cluster string)                    // ends a leadership as the loss of its lease does
	Compact        func(t *testing.T)                                    // forgets history; nil = there is none
	WriteHead      func(t *testing.T, cluster string, v []byte)          // nil, as the others below = no raw access
	WriteDeclared  func(t *testing.T, cluster string, v []byte)          // v nil = delete
	ReadHead       func(t *testing.T, cluster string) []byte             //
	DamageContents func(t *testing.T, cluster string, d topology.Digest) // a content no longer has its digest
	EndLease       func(t *testing.T, cluster, node string)              // ends a node's lease, as its revocation does
	DeleteLive     func(t *testing.T, cluster, node string)              // deletes a node's record under its lease
	WriteLive      func(t *testing.T, cluster, node string, v []byte)    // nil = no raw access
	// Backup saves the cluster; what it returns makes it that again under
	// running processes. nil = not to be had.
	Backup func(t *testing.T, cluster string) (restore func(t *testing.T))
	// Disturb lets calls of the second process fail now and then, until what
	// it returns is called. nil = not to be had.
	Disturb func(t *testing.T) (stop func())
}

// Run runs the suite; open returns a fresh, empty store for each test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		fn   func(*testing.T, *suite)
	}{
		{"Directory", testDirectory},
		{"WatchNames", testWatchNames},
		{"NoCluster", testNoCluster},
		{"Declare", testDeclare},
		{"DeclareConflict", testDeclareConflict},
		{"DeclareInvalid", testDeclareInvalid},
		{"DeclareAtOnce", testDeclareAtOnce},
		{"Notes", testNotes},
		{"Publish", testPublish},
		{"PublishRefused", testPublishRefused},
		{"PublishNothing", testPublishNothing},
		{"Fencing", testFencing},
		{"Resign", testResign},
		{"CampaignEnds", testCampaignEnds},
		{"Kept", testKept},
		{"Descends", testDescends},
		{"Show", testShow},
		{"ShownAreBounded", testShownAreBounded},
		{"Bump", testBump},
		{"BumpRefused", testBumpRefused},
		{"BumpEmpty", testBumpEmpty},
		{"Freeze", testFreeze},
		{"Delete", testDelete},
		{"Restore", testRestore},
		{"Watch", testWatch},
		{"WatchLatestWins", testWatchLatestWins},
		{"ManyWatchers", testManyWatchers},
		{"Compaction", testCompaction},
		{"Sizes", testSizes},
		{"NeverHalf", testNeverHalf},
		{"Member06", testMember06},
		{"Register", testRegister},
		{"RegisterRefused", testRegisterRefused},
		{"RegisterRestart", testRegisterRestart},
		{"RegisterComesBack", testRegisterComesBack},
		{"Marks", testMarks},
		{"WatchRoll", testWatchRoll},
		{"GarbageLive", testGarbageLive},
		{"Member06Registers", testMember06Registers},
		{"GarbageDeclared", testGarbageDeclared},
		{"GarbageHead", testGarbageHead},
		{"DamagedContent", testDamagedContent},
		{"Overlay", testOverlay},
		{"Histories", testHistories},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			test.fn(t, &suite{Harness: h, ctx: ctx})
		})
	}
}

type suite struct {
	Harness
	ctx context.Context
}

// declared returns n nodes n000..., on a ring.
func declared(cluster string, n int) topology.Declared {
	d := topology.Declared{Cluster: cluster, Spec: topology.Spec{Algorithm: topology.Ring, VNodes: 4}.Normal()}
	for i := range n {
		d.Nodes = append(d.Nodes, node(i))
	}
	return d
}

func node(i int) topology.Node {
	return topology.Node{ID: fmt.Sprintf("n%05d", i), Addr: fmt.Sprintf("10.0.%d.%d:11211", i>>8, i&255), Weight: 1}
}

func (s *suite) create(t *testing.T, d topology.Declared) (membership.ClusterStore, membership.State) {
	t.Helper()
	state, err := s.Directory.Create(s.ctx, d, "test", "to begin")
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	return s.Directory.Open(d.Cluster), state
}

func (s *suite) lead(t *testing.T, cluster string) membership.Leadership {
	t.Helper()
	l, err := s.Elector.Campaign(s.ctx, cluster, t.Name())
	if err != nil {
		t.Fatalf("Campaign: %v", err)
	}
	t.Cleanup(func() { // ctx has ended by then
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = l.Resign(ctx)
	})
	return l
}

func (s *suite) load(t *testing.T, store membership.Store) membership.State {
	t.Helper()
	state, err := store.Load(s.ctx)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return state
}

func (s *suite) declare(t *testing.T, store membership.Store, e membership.Edit) membership.State {
	t.Helper()
	state, err := store.Declare(s.ctx, e)
	if err != nil {
		t.Fatalf("Declare: %v", err)
	}
	return state
}

// Next makes the publication that answers the state, for tests that publish
// without a controller.
func Next(t testing.TB, state membership.State) membership.Publication {
	t.Helper()
	d := topology.Draft{Cluster: state.Declared.Cluster, ID: state.ID, History: state.History, Spec: state.Declared.Spec, Nodes: state.Declared.Nodes,
		Version: topology.Version{Epoch: state.Epoch, Seq: state.Position().Head.Version.Seq + 1}}
	var prev *placement.Table
	if state.Head != nil {
		var err error
		if prev, err = placement.New(state.Head); err != nil {
			t.Fatalf("placement.New: %v", err)
		}
	}
	table, err := placement.Update(prev, d)
	if err != nil {
		t.Fatalf("placement.Update: %v", err)
	}
	report, err := placement.Movement(prev, table)
	if err != nil {
		t.Fatalf("placement.Movement: %v", err)
	}
	return membership.Publication{Next: table.Topology(), Movement: report, Generation: state.Generation, Expect: state.Position().Head}
}

// publish answers the state that the store holds, and returns what it wrote.
func (s *suite) publish(t *testing.T, store membership.Store, l membership.Leadership) membership.Publication {
	t.Helper()
	p := Next(t, s.load(t, store))
	if err := store.Publish(s.ctx, l, p); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	return p
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: error %v, want %v", what, got, want)
	}
}

// eventually waits until ok; it says what did not come about.
func (s *suite) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}
