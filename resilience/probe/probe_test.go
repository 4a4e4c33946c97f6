package probe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience/backoff"
	"github.com/shardd/shardd/resilience/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sec, ms = time.Second, time.Millisecond

var errDown = errors.New("down")

// plain waits 1, 2, 4, 5, 5 s.
var plain = backoff.Config{Jitter: backoff.None}

func must(t testing.TB, c probe.Config) *probe.Set[string] {
	t.Helper()
	s, err := probe.New[string](c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keys(due []probe.Probe[string]) []string {
	var out []string
	for _, p := range due {
		out = append(out, p.Key)
	}
	return out
}

func TestSchedule(t *testing.T) {
	s := must(t, probe.Config{Backoff: plain, Successes: 2})
	if _, ok := s.Next(0); ok || s.Len() != 0 {
		t.Error("an empty set has something to do")
	}
	if !s.Fail("a", 0) || s.Fail("a", 0) || !s.Contains("a") || s.Contains("b") {
		t.Error("Fail puts in once")
	}
	var times []time.Duration
	now := time.Duration(0)
	step := func(good bool) bool {
		wait, _ := s.Next(now)
		if d := s.Due(nil, now+wait-1); d != nil {
			t.Fatalf("due before its time: %v", keys(d))
		}
		now += wait
		times = append(times, wait)
		d := s.Due(nil, now)
		if len(d) != 1 || len(s.Due(nil, now)) != 0 {
			t.Fatalf("at %v due %v; want one probe, once", now, keys(d))
		}
		well := d[0].Done(now, good)
		if d[0].Done(now, true) {
			t.Fatal("a second Done counted")
		}
		return well
	}
	for range 5 {
		step(false)
	}
	if step(true) || step(false) || step(true) || !step(true) {
		t.Error("want well after two successes in a row")
	}
	want := []time.Duration{sec, 2 * sec, 4 * sec, 5 * sec, 5 * sec, 5 * sec, sec, 2 * sec, sec}
	if d := cmp.Diff(want, times); d != "" {
		t.Errorf("waits (-want +got):\n%s", d)
	}
	if s.Len() != 0 || (probe.Probe[string]{}).Done(0, true) {
		t.Error("left over")
	}
}

func TestLostAndForgotten(t *testing.T) {
	s := must(t, probe.Config{Backoff: plain, Concurrency: 1})
	s.Fail("a", 0)
	s.Fail("b", 1)
	lost := s.Due(nil, sec+1)
	if d := cmp.Diff([]string{"a"}, keys(lost)); d != "" {
		t.Fatalf("longest due first, one at once (-want +got):\n%s", d)
	}
	if wait, _ := s.Next(sec + 1); wait != 2*sec {
		t.Errorf("next in %v; want when the probe times out", wait)
	}
	next := s.Due(nil, 3*sec+1)
	if d := cmp.Diff([]string{"b"}, keys(next)); d != "" {
		t.Fatalf("a lost probe frees its place (-want +got):\n%s", d)
	}
	if lost[0].Done(3*sec+1, true) || !s.Contains("a") {
		t.Error("a probe that had timed out made the node well")
	}
	if !s.Forget("b") || s.Forget("b") || next[0].Done(4*sec, true) {
		t.Error("a forgotten node was told of")
	}
	s.Fail("b", 4*sec)
	if d := s.Due(nil, 100*sec); len(d) != 1 {
		t.Errorf("due %v; want one: a forgotten probe frees its place", keys(d))
	}
	if d := s.Due(nil, -time.Hour); len(d) != 0 {
		t.Errorf("a clock that went back: due %v", keys(d))
	}
	if wait, ok := s.Next(-time.Hour); !ok || wait > 5*sec {
		t.Errorf("a clock that went back: next in %v", wait)
	}
}

// TestZone is the field case: all three nodes of the preferred zone are down and
// get no requests; one comes back, and is known to within 10 s.
func TestZone(t *testing.T) {
	for _, back := range []time.Duration{0, 1500 * ms, 20 * sec, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			clock := func() time.Duration { return time.Since(start) }
			s := must(t, probe.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			var found time.Duration
			var mu sync.Mutex
			probes := 0
			done := make(chan error)
			go func() {
				done <- s.Run(ctx, clock, func(ctx context.Context, node string) error {
					mu.Lock()
					probes++
					mu.Unlock()
					switch {
					case node == "a2" && clock() >= back:
						return nil
					case node == "a1":
						<-ctx.Done() // hangs
						return ctx.Err()
					}
					return errDown
				}, func(node string) {
					if node != "a2" {
						t.Errorf("%s is well", node)
					}
					found = clock()
				})
			}()
			for _, n := range []string{"a1", "a2", "a3"} {
				s.Fail(n, clock())
			}
			time.Sleep(back + 10*sec)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run = %v", err)
			}
			if found < back || found > back+7*sec || s.Len() != 2 {
				t.Errorf("back at %v, found at %v, %d left; want within 7s", back, found, s.Len())
			}
			if most := int(3*(back+10*sec)/(2500*ms)) + 9; probes > most {
				t.Errorf("%d probes in %v; want at most %d", probes, back+10*sec, most)
			}
		})
	}
}

// TestRunWakes: a node that fails while Run waits for a later one is not overslept.
func TestRunWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() time.Duration { return time.Since(start) }
		s := must(t, probe.Config{Backoff: backoff.Config{Base: sec, Max: time.Hour, Factor: 1000, Jitter: backoff.None}})
		ctx, cancel := context.WithCancel(t.Context())
		var asked []string
		done := make(chan error)
		go func() {
			done <- s.Run(ctx, clock, func(_ context.Context, node string) error {
				asked = append(asked, fmt.Sprint(node, " ", clock()))
				return errDown
			}, nil)
		}()
		time.Sleep(10 * sec) // nothing to do
		s.Fail("a", clock())
		time.Sleep(5 * sec)
		s.Fail("b", clock())
		time.Sleep(5 * sec)
		cancel()
		<-done
		if d := cmp.Diff([]string{"a 11s", "b 16s"}, asked); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() time.Duration { return time.Since(start) }
		s := must(t, probe.Config{Concurrency: 3})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i := range 50 {
			s.Fail(fmt.Sprint(i), 0)
		}
		var mu sync.Mutex
		in, most, total := 0, 0, 0
		_ = s.Run(ctx, clock, func(ctx context.Context, _ string) error {
			mu.Lock()
			in, total = in+1, total+1
			most = max(most, in)
			mu.Unlock()
			time.Sleep(100 * ms)
			mu.Lock()
			in--
			mu.Unlock()
			return errDown
		}, nil)
		if most != 3 || total < 500 {
			t.Errorf("%d at once, %d in all; want 3 at once and no idle place", most, total)
		}
	})
}

func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.IntRange(1, 3).Draw(t, "concurrency")
		s, err := probe.New[int](probe.Config{Concurrency: c})
		if err != nil {
			t.Fatal(err)
		}
		type held struct {
			p  probe.Probe[int]
			at time.Duration
		}
		var open []held
		in := map[int]bool{}
		now := time.Duration(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "dt")) * ms
			open = slices.DeleteFunc(open, func(h held) bool { return now-h.at >= 2*sec })
			k := rapid.IntRange(0, 4).Draw(t, "key")
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				if s.Fail(k, now) == in[k] {
					t.Fatal("Fail")
				}
				in[k] = true
			case 1:
				if s.Forget(k) != in[k] {
					t.Fatal("Forget")
				}
				delete(in, k)
				open = slices.DeleteFunc(open, func(h held) bool { return h.p.Key == k })
			case 2:
				for _, p := range s.Due(nil, now) {
					if !in[p.Key] || slices.ContainsFunc(open, func(h held) bool { return h.p.Key == p.Key }) {
						t.Fatalf("%d is probed twice at once, or not in", p.Key)
					}
					open = append(open, held{p, now})
				}
				if len(open) > c {
					t.Fatalf("%d at once", len(open))
				}
			case 3:
				if len(open) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				h := open[i]
				open = slices.Delete(open, i, i+1)
				if good := rapid.Bool().Draw(t, "good"); h.p.Done(now, good) != good {
					t.Fatalf("Done(%v)", good)
				} else if good {
					delete(in, h.p.Key)
				}
			}
			if s.Len() != len(in) {
				t.Fatalf("%d in; want %d", s.Len(), len(in))
			}
		}
	})
}

func TestRefused(t *testing.T) {
	for _, c := range []probe.Config{{Timeout: -1}, {Concurrency: -1}, {Successes: -1}} {
		if _, err := probe.New[string](c); !errors.Is(err, probe.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
	if _, err := probe.New[string](probe.Config{Backoff: backoff.Config{Base: 2, Max: 1}}); !errors.Is(err, backoff.ErrConfig) {
		t.Errorf("bad backoff: %v", err)
	}
}

func Example() {
	s, err := probe.New[string](probe.Config{Backoff: backoff.Config{Base: time.Millisecond, Max: time.Millisecond}})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	s.Fail("cache-a", clock())
	err = s.Run(ctx, clock,
		func(ctx context.Context, node string) error { return nil }, // dial it, ping it
		func(node string) {
			fmt.Println(node, "is well")
			cancel()
		})
	fmt.Println(err)
	// Output:
	// cache-a is well
	// context canceled
}

func BenchmarkDue(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			b.ReportAllocs()
			s := must(b, probe.Config{})
			for i := range n {
				s.Fail(fmt.Sprint(i), 0)
			}
			for b.Loop() {
				s.Due(nil, 0)
			}
		})
	}
}

// With a loop of your own in place of Run: which probes are due, and when next.
func ExampleProbe() {
	s, err := probe.New[string](probe.Config{Backoff: backoff.Config{Base: time.Second, Max: time.Second}})
	if err != nil {
		panic(err)
	}
	s.Fail("cache-a", 0)
	wait, _ := s.Next(0)
	for _, p := range s.Due(nil, wait) {
		fmt.Println(p.Key, "well:", p.Done(wait, true))
	}
	fmt.Println(s.Len())
	// Output:
	// cache-a well: true
	// 0
}
