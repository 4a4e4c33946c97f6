package sdk_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// panicky is a hook that always panics.
type panicky struct{}

func (panicky) OnTaken(_, _ topology.Ref, _ time.Duration) { panic("taken") }
func (panicky) OnRefused(*sdk.RefusedError)                { panic("refused") }
func (panicky) OnProblem(error)                            { panic("problem") }

// TestHooksPanic: hooks that panic stop neither the client nor the hooks after them.
func TestHooksPanic(t *testing.T) {
	l := newLine(t)
	var said []string
	c, f := start(t, sdk.WithHooks(sdk.Hooks{OnTaken: panicky{}.OnTaken, OnRefused: panicky{}.OnRefused, OnProblem: panicky{}.OnProblem}),
		sdk.WithHook(panicky{}, talk{"talk", &said}))
	v1, v2 := l.ring(nodes(3)...), l.ring(nodes(4)...)
	mustGive(t, f, v1)
	mustGive(t, f, v2)
	_ = f.give(v1)
	f.report(sdk.ErrOlder)
	if _, err := c.Route("k"); err != nil || c.Topology() != v2 {
		t.Error(err, c.Topology().Version())
	}
	if len(said) != 3 {
		t.Errorf("said %q", said)
	}
}

// TestCloseInHook: whatever is called back may close the client.
func TestCloseInHook(t *testing.T) {
	for name, build := range map[string]func(closes func()) []sdk.Option{
		"taken": func(closes func()) []sdk.Option {
			return []sdk.Option{sdk.WithHooks(sdk.Hooks{OnTaken: func(_, to topology.Ref, _ time.Duration) {
				if to.Version.Seq == 2 {
					closes()
				}
			}})}
		},
		"drained": func(closes func()) []sdk.Option {
			return []sdk.Option{sdk.WithHooks(sdk.Hooks{OnDrained: func(sdk.Departed) { closes() }})}
		},
		"ejected": func(closes func()) []sdk.Option {
			return []sdk.Option{sdk.WithResilience(sdk.Resilience{OnEject: func(outlier.Event) { closes() }})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c *sdk.Client
				closed := make(chan struct{})
				l := newLine(t)
				c, f := start(t, build(func() { c.Close(); close(closed) })...)
				mustGive(t, f, l.ring(nodes(4)...))
				key := owned(t, c, "node-003")
				for range 5 {
					acquire(t, c, key, 1).Done(sdk.Failure)
				}
				if name != "ejected" {
					mustGive(t, f, l.ring(nodes(3)...))
				}
				<-closed
				if err := c.Close(); err != nil { // from outside it waits for all
					t.Error(err)
				}
			})
		})
	}
}

// TestSlowCallbacks: a callback that does not return stops nothing that time brings:
// nodes come back from their ejection.
func TestSlowCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		release := make(chan struct{})
		defer close(release)
		c, f := start(t, sdk.WithResilience(sdk.Resilience{NoBreaker: true, OnEject: func(outlier.Event) { <-release }}))
		mustGive(t, f, l.ring(nodes(4)...))
		key := owned(t, c, "node-002")
		for range 5 {
			acquire(t, c, key, 1).Done(sdk.Failure)
		}
		synctest.Wait()
		if tk := acquire(t, c, key, 1); tk.ID() == "node-002" {
			t.Fatal("it is not ejected")
		}
		time.Sleep(5 * time.Minute)
		if tk := acquire(t, c, key, 1); tk.ID() != "node-002" {
			t.Errorf("five minutes later the request goes to %s", tk.ID())
		}
	})
}

// TestOutlierMayCallClient: who is told of ejections may do anything with the client,
// also when it is a version that ends one.
func TestOutlierMayCallClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		var c *sdk.Client
		told := 0
		config := outlier.Config{OnChange: func(outlier.Event) {
			told++
			c.SetHealth("node-001", told%2 == 0)
		}}
		c, f := start(t, sdk.WithResilience(sdk.Resilience{Outlier: config}))
		four := nodes(4)
		mustGive(t, f, l.ring(four...))
		key := owned(t, c, "node-002")
		for range 5 {
			acquire(t, c, key, 1).Done(sdk.Failure)
		}
		time.Sleep(time.Second)
		four[2].State = topology.StateDown // which ends the ejection
		mustGive(t, f, l.ring(four...))
		time.Sleep(time.Second)
		synctest.Wait()
		if told != 2 {
			t.Errorf("told %d times", told)
		}
	})
}
