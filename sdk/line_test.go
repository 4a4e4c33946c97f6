package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line publishes versions of one cluster, as a controller would.
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

// publish makes the next version under spec with nodes.
func (l *line) publish(spec topology.Spec, nodes ...topology.Node) *topology.Topology {
	l.t.Helper()
	d := topology.Draft{Cluster: "cache", ID: l.id, History: l.hist, Version: topology.Version{Epoch: l.epoch, Seq: 1}, Spec: spec, Nodes: nodes}
	if l.table != nil && l.table.Topology().Version().Epoch == l.epoch {
		d.Version.Seq = l.table.Topology().Version().Seq + 1
	}
	table, err := placement.Update(l.table, d)
	if err != nil {
		l.t.Fatalf("publish: %v", err)
	}
	l.table = table
	return table.Topology()
}

// ring is publish under the default ring.
func (l *line) ring(nodes ...topology.Node) *topology.Topology {
	l.t.Helper()
	return l.publish(topology.Spec{Algorithm: topology.Ring}, nodes...)
}

// copy returns another line that has the same past.
func (l *line) copy() *line {
	c := *l
	return &c
}

// newEpoch begins an epoch, as a bump does.
func (l *line) newEpoch() { l.epoch, l.hist = l.epoch+1, topology.NewHistory() }

func nodes(n int) []topology.Node {
	all := make([]topology.Node, n)
	for i := range all {
		all[i] = topology.Node{ID: fmt.Sprintf("node-%03d", i), Addr: fmt.Sprintf("10.0.0.%d:11211", i), Weight: 1}
	}
	return all
}

// feed is a source that a test plays by hand: each call of give goes through
// the client's fn and returns what that said.
type feed struct {
	offers  chan func(context.Context, func(*topology.Topology) error) error
	answers chan error
	haves   chan topology.Ref // what each Watch was called with
}

func newFeed() *feed {
	return &feed{make(chan func(context.Context, func(*topology.Topology) error) error), make(chan error), make(chan topology.Ref, 100)}
}

func (f *feed) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	f.haves <- have
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case offer := <-f.offers:
			err := offer(ctx, fn)
			f.answers <- err
			if errors.Is(err, errStop) {
				return err
			}
		}
	}
}

// give offers t and returns the client's answer.
func (f *feed) give(t *topology.Topology) error {
	f.offers <- func(_ context.Context, fn func(*topology.Topology) error) error { return fn(t) }
	return <-f.answers
}

// report tells the client of a problem.
func (f *feed) report(err error) {
	f.offers <- func(ctx context.Context, _ func(*topology.Topology) error) error { sdk.Report(ctx, err); return nil }
	<-f.answers
}

var errStop = fmt.Errorf("feed: stop")

// stop lets Watch return.
func (f *feed) stop() {
	f.offers <- func(context.Context, func(*topology.Topology) error) error { return errStop }
	<-f.answers
}

// start returns a client that follows a feed.
func start(t testing.TB, opts ...sdk.Option) (*sdk.Client, *feed) {
	t.Helper()
	f := newFeed()
	c, err := sdk.New(f, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, f
}

func mustGive(t testing.TB, f *feed, topo *topology.Topology) {
	t.Helper()
	if err := f.give(topo); err != nil {
		t.Fatalf("version %s: %v", topo.Version(), err)
	}
}
