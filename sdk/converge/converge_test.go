package converge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// muted is a source that can be made silent.
type muted struct {
	*shardtest.Plane
	silent atomic.Bool
}

func (m *muted) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	return m.Plane.Watch(ctx, have, func(t *topology.Topology) error {
		if m.silent.Load() {
			return errors.New("silent")
		}
		return fn(t)
	})
}

func follow(t *testing.T, plane *shardtest.Plane) (*muted, *converge.Source, *sdk.Client) {
	t.Helper()
	inner := &muted{Plane: plane}
	src := converge.New(inner)
	c, err := sdk.New(src)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return inner, src, c
}

// remember waits until past knows what its client holds.
func remember(t *testing.T, plane *shardtest.Plane) *converge.Past {
	t.Helper()
	p := converge.Remember(plane.Client())
	t.Cleanup(p.Close)
	knows(t, p, plane)
	return p
}

func knows(t *testing.T, p *converge.Past, plane *shardtest.Plane) {
	t.Helper()
	for range 1000 {
		if a, newer := p.Answer(topology.Ref{ClusterID: plane.Topology().ClusterID()}); a != nil || !newer {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond) // its callback
}

// TestAnswers: any number of versions in one step, over an epoch too, and on from there
// by the source.
func TestAnswers(t *testing.T) {
	plane := shardtest.New(t, "a", "b", "c")
	past := remember(t, plane)
	inner, src, c := follow(t, plane)
	inner.silent.Store(true)
	base := c.Topology()
	for range 3 {
		plane.Remove("c")
		plane.Add(topology.Node{ID: "c", Weight: 1})
	}
	answer, newer := past.Answer(base.Ref())
	if !newer || len(answer) == 0 {
		t.Fatalf("%d bytes, newer %v", len(answer), newer)
	}
	if !src.Take(base, answer) || c.Topology().Ref() != plane.Topology().Ref() {
		t.Fatalf("on %v", c.Topology().Version())
	}
	if !src.Take(base, answer) { // a second request that was under way: it is on already
		t.Error("the second answer says that nothing is newer")
	}
	if a, newer := past.Answer(c.Topology().Ref()); a != nil || newer {
		t.Error("an answer to who holds the newest")
	}
	base = c.Topology()
	plane.RaiseEpoch()
	plane.Remove("a")
	if answer, newer = past.Answer(base.Ref()); !newer || !src.Take(base, answer) || c.Topology().Ref() != plane.Topology().Ref() {
		t.Errorf("over an epoch: on %v, newer %v, %d bytes", c.Topology().Version(), newer, len(answer))
	}
	inner.silent.Store(false)
	next := plane.Remove("b")
	if c.Topology() != next {
		t.Errorf("by the source: on %v", c.Topology().Version())
	}
}

// TestForgetsOnReset: what a server held before it was reset need not lead to what it
// holds since: it answers nobody with the difference.
func TestForgetsOnReset(t *testing.T) {
	plane := shardtest.New(t, "a", "b")
	client := plane.Client()
	past := converge.Remember(client)
	defer past.Close()
	knows(t, past, plane)
	first := plane.Topology()
	lost := plane.Assign("k", "a") // a client has this one
	knows(t, past, plane)
	plane.GoBack(first.Version())
	for _, id := range []string{"b", "a", "b", "a"} {
		plane.Assign("k", id)
	}
	client.Reset()
	for client.Topology().Ref() != plane.Topology().Ref() {
		time.Sleep(time.Millisecond)
	}
	knows(t, past, plane)
	if answer, newer := past.Answer(lost.Ref()); answer != nil || !newer {
		t.Errorf("an answer of %d bytes to who holds another line, newer %v", len(answer), newer)
	}
}

// TestRemembersAtOnce: what the client holds when it is asked is known from the
// first moment, however quickly it goes on.
func TestRemembersAtOnce(t *testing.T) {
	plane := shardtest.New(t, "a", "b")
	client := plane.Client()
	for range 50 {
		base := client.Topology()
		past := converge.Remember(client)
		plane.Publish(func(d *topology.Declared) { d.Nodes[0].Weight++ })
		plane.Publish(func(d *topology.Declared) { d.Nodes[0].Weight++ })
		if answer, newer := past.Answer(base.Ref()); !newer || len(answer) == 0 {
			t.Fatalf("%v to %v: %d bytes, newer %v", base.Version(), client.Topology().Version(), len(answer), newer)
		}
		past.Close()
	}
}

// broken is a source that fails as soon as it has brought something; ended says that
// it has.
type broken struct {
	*shardtest.Plane
	ended chan struct{}
}

func (b *broken) Watch(ctx context.Context, _ topology.Ref, fn func(*topology.Topology) error) error {
	select {
	case <-b.ended: // watched again: nothing comes any more
		<-ctx.Done()
		return ctx.Err()
	default:
	}
	if err := fn(b.Topology()); err != nil {
		return err
	}
	return errors.New("broken")
}

// TestBetweenWatches: answers are taken, too, while the client waits before it asks a
// source again that has failed.
func TestBetweenWatches(t *testing.T) {
	plane := shardtest.New(t, "a", "b", "c")
	past := remember(t, plane)
	inner := &broken{plane, make(chan struct{})}
	src := converge.New(inner)
	c, err := sdk.New(src, sdk.WithHook(ended{inner.ended}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-inner.ended
	base := c.Topology()
	plane.Remove("c")
	answer, _ := past.Answer(base.Ref())
	if !src.Take(base, answer) || c.Topology().Ref() != plane.Topology().Ref() {
		t.Errorf("on %v", c.Topology().Version())
	}
	c.Close()
	if src.Take(base, answer) {
		t.Error("a closed client took an answer")
	}
}

// ended is closed when the client has heard that its source failed.
type ended struct{ c chan struct{} }

func (e ended) OnProblem(error) { close(e.c) }

// TestNobodyGoesBack: a server answers only to who holds what it held itself; the client
// refuses the rest.
func TestNobodyGoesBack(t *testing.T) {
	plane, other := shardtest.New(t, "a", "b"), shardtest.New(t, "a", "b")
	first := plane.Topology()
	_, src, c := follow(t, plane)
	plane.Remove("a")
	held := c.Topology()
	saved, err := first.MarshalSaved()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Topology().MarshalSaved()
	if err != nil {
		t.Fatal(err)
	}
	src.Take(held, append([]byte("S"), saved...))
	for name, answer := range map[string][]byte{"nothing": nil, "nonsense": []byte("Dxyz"), "a later form": []byte("Zxyz"), "another cluster": append([]byte("S"), foreign...)} {
		if src.Take(held, answer) {
			t.Errorf("%s was taken", name)
		}
	}
	if c.Topology() != held {
		t.Errorf("on %v", c.Topology().Version())
	}
	past := remember(t, plane)
	forged := first.Ref()
	forged.Digest[0]++
	if a, newer := past.Answer(forged); a != nil || !newer {
		t.Errorf("%d bytes for a digest that never was, newer %v", len(a), newer)
	}
	if a, newer := past.Answer(other.Topology().Ref()); a != nil || newer {
		t.Error("an answer to another cluster")
	}
	if src.TakeHTTP(held, &http.Response{StatusCode: 200}) {
		t.Error("an answer of status 200 was taken")
	}
}

func TestPresent(t *testing.T) {
	topo := shardtest.New(t, "a").Topology()
	if ref, err := converge.Parse(converge.Present(topo)); err != nil || ref != topo.Ref() {
		t.Errorf("%v, %v", ref, err)
	}
	for _, bad := range []string{"", converge.Present(nil), "a/b/c/d", converge.Present(topo) + "/", "////"} {
		if _, err := converge.Parse(bad); !errors.Is(err, converge.ErrPresented) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	plane := shardtest.New(f, "a", "b")
	base := plane.Topology()
	d, err := topology.Diff(base, plane.Remove("a"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte("D"), d.Encode()...))
	f.Add([]byte("S"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := converge.Read(base, b); (got == nil) == (err == nil) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func Example() {
	plane := shardtest.New(exampleTB{}, "a", "b")
	source := converge.New(plane) // in a client: around its source
	client, err := sdk.New(source)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	past := converge.Remember(client) // in a server
	defer past.Close()
	ref, err := converge.Parse(converge.Present(plane.Topology())) // in between: a header
	fmt.Println(ref.Version, err)
	// Output: 1.1 <nil>
}

type exampleTB struct{}

func (exampleTB) Helper()                   {}
func (exampleTB) Cleanup(func())            {}
func (exampleTB) Fatalf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
