package sdk_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// TestReset: what is refused by the rule is taken once after a reset, from a
// watch that presents nothing, and the rule holds again from there.
func TestReset(t *testing.T) {
	l := newLine(t)
	v1, v2, v3 := l.ring(nodes(1)...), l.ring(nodes(2)...), l.ring(nodes(3)...)
	c, f := start(t)
	mustGive(t, f, v3)
	<-f.haves
	if err := f.give(v1); !errors.Is(err, sdk.ErrOlder) {
		t.Fatalf("1.1 after 1.3: %v", err)
	}
	c.Reset()
	if have := <-f.haves; !have.IsZero() {
		t.Errorf("after the reset the client presents %s", have)
	}
	if got := c.Topology(); got != v3 {
		t.Errorf("lookups go by %s before anything came", got.Ref())
	}
	if err := f.give(newLine(t).ring(nodes(1)...)); !errors.Is(err, sdk.ErrCluster) {
		t.Errorf("another cluster: %v", err)
	}
	mustGive(t, f, v1)
	if c.Topology() != v1 || c.State().Problem != nil {
		t.Errorf("held %s, problem %v", c.Topology().Ref(), c.State().Problem)
	}
	mustGive(t, f, v2)
	if err := f.give(v1); !errors.Is(err, sdk.ErrOlder) {
		t.Errorf("the rule after the reset: %v", err)
	}
	c.Reset()
	<-f.haves
	mustGive(t, f, v2) // the same again ends the reset, too
	if err := f.give(v1); !errors.Is(err, sdk.ErrOlder) {
		t.Errorf("the rule after the same version: %v", err)
	}
	c.Close()
	c.Reset()
}

// TestWithReset: a start that does not hold its source to the snapshot file.
func TestWithReset(t *testing.T) {
	l := newLine(t)
	v1, v2 := l.ring(nodes(1)...), l.ring(nodes(2)...)
	path := filepath.Join(t.TempDir(), "snapshot")
	c, f := start(t, sdk.WithSnapshot(path))
	mustGive(t, f, v2)
	c.Close()
	for _, reset := range []bool{false, true} {
		opts := []sdk.Option{sdk.WithSnapshot(path)}
		if reset {
			opts = append(opts, sdk.WithReset())
		}
		c, f = start(t, opts...)
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.Topology(); got == nil || got.Ref() != v2.Ref() {
			t.Fatalf("reset %v: the file brings %v", reset, got)
		}
		want := v2.Ref()
		if reset {
			want = topology.Ref{}
		}
		if have := <-f.haves; have != want {
			t.Errorf("reset %v: it presents %s", reset, have)
		}
		if err := f.give(v1); errors.Is(err, sdk.ErrOlder) == reset {
			t.Errorf("reset %v: 1.1 is answered with %v", reset, err)
		}
		c.Close()
	}
	c, _ = start(t, sdk.WithSnapshot(path))
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.Topology().Ref(); got != v1.Ref() {
		t.Errorf("the file has %s after the reset", got)
	}
}

// TestResetIsTold: callbacks are told once that a topology need not continue the last.
func TestResetIsTold(t *testing.T) {
	l := newLine(t)
	v1, v2, v3 := l.ring(nodes(1)...), l.ring(nodes(2)...), l.ring(nodes(3)...)
	c, f := start(t)
	mustGive(t, f, v3)
	told := make(chan sdk.Change)
	defer c.OnChange(func(ch sdk.Change) { told <- ch })()
	if ch := <-told; ch.Anew || ch.To != v3 {
		t.Errorf("%+v", ch)
	}
	c.Reset()
	mustGive(t, f, v1)
	if ch := <-told; !ch.Anew || ch.To != v1 {
		t.Errorf("%+v", ch)
	}
	mustGive(t, f, v2)
	if ch := <-told; ch.Anew || ch.To != v2 {
		t.Errorf("%+v", ch)
	}
}
