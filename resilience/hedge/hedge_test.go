package hedge_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/resilience/budget"
	"github.com/shardd/shardd/resilience/hedge"
	"github.com/shardd/shardd/resilience/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sec, ms = time.Second, time.Millisecond

var (
	errDown = retry.As(retry.Unavailable, errors.New("503"))
	errApp  = errors.New("no such table")
)

func must(t testing.TB, c hedge.Config) *hedge.Policy[int] {
	t.Helper()
	p, err := hedge.New[int](c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// step is what an attempt does: it takes a time and returns its number, or err.
type step struct {
	takes time.Duration
	err   error
}

func TestDo(t *testing.T) {
	f := func(name string, c hedge.Config, steps []step, want int, wantErr error, wantTook time.Duration, wantSent int) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent, cancelled atomic.Int32
				start := time.Now()
				got, err := hedge.Do(t.Context(), must(t, c), func(ctx context.Context) (int, error) {
					n, _ := retry.Attempt(ctx)
					sent.Add(1)
					s := steps[n-1]
					select {
					case <-time.After(s.takes):
						return n, s.err
					case <-ctx.Done():
						cancelled.Add(1)
						return 0, ctx.Err()
					}
				})
				took := time.Since(start)
				if err != nil {
					got = 0
				}
				synctest.Wait() // those that lost have been told
				if got != want || !errors.Is(err, wantErr) || took != wantTook || int(sent.Load()) != wantSent {
					t.Errorf("%d, %v after %v, %d sent; want %d, %v after %v, %d sent", got, err, took, sent.Load(), want, wantErr, wantTook, wantSent)
				}
			})
		})
	}
	c := hedge.Config{Delay: 100 * ms}
	two := hedge.Config{Delay: 100 * ms, MaxHedges: 2}
	empty, err := budget.New(budget.Config{Share: -1, Min: -1})
	if err != nil {
		t.Fatal(err)
	}
	broke := hedge.Config{Delay: 100 * ms, Budget: empty}
	f("quick", c, []step{{takes: 99 * ms}}, 1, nil, 99*ms, 1)
	f("slow, second wins", c, []step{{takes: sec}, {takes: 50 * ms}}, 2, nil, 150*ms, 2)
	f("slow, first still wins", c, []step{{takes: 120 * ms}, {takes: 50 * ms}}, 1, nil, 120*ms, 2)
	f("third", two, []step{{takes: sec}, {takes: sec}, {takes: 10 * ms}}, 3, nil, 210*ms, 3)
	f("first fails, second is awaited", c, []step{{takes: 120 * ms, err: errDown}, {takes: 50 * ms}}, 2, nil, 150*ms, 2)
	f("first fails before the delay", c, []step{{takes: 10 * ms, err: errDown}, {takes: 50 * ms}}, 2, nil, 150*ms, 2)
	f("all fail", c, []step{{takes: 120 * ms, err: errDown}, {takes: 50 * ms, err: errDown}}, 0, errDown, 150*ms, 2)
	f("a failure that ends it", c, []step{{takes: 10 * ms, err: errApp}}, 0, errApp, 10*ms, 1)
	f("the hedge finds that it ends", c, []step{{takes: sec}, {takes: 10 * ms, err: errApp}}, 0, errApp, 110*ms, 2)
	f("no budget", broke, []step{{takes: 300 * ms}}, 1, nil, 300*ms, 1)
	f("no budget, first fails late", broke, []step{{takes: 300 * ms, err: errDown}}, 0, errDown, 300*ms, 1)
	f("no budget, first fails early", broke, []step{{takes: 10 * ms, err: errDown}}, 0, errDown, 100*ms, 1)
}

// TestBudget: when everything is slow, hedges stay within the share.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := budget.New(budget.Config{Share: .1, Min: -1})
		var hedges atomic.Int32
		p := must(t, hedge.Config{
			Delay: ms, Budget: b, Clock: func() time.Duration { return 0 }, OnHedge: func(int) { hedges.Add(1) },
		})
		for range 200 {
			_, _ = hedge.Do(t.Context(), p, func(ctx context.Context) (int, error) {
				select {
				case <-time.After(5 * ms):
				case <-ctx.Done():
				}
				return 0, nil
			})
		}
		if hedges.Load() != 20 {
			t.Errorf("%d hedges of 200 slow calls; want 20", hedges.Load())
		}
	})
}

func TestQuantile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hedged atomic.Int32
		p := must(t, hedge.Config{Quantile: .95, MinSamples: 50, OnHedge: func(int) { hedged.Add(1) }})
		took := make([]time.Duration, 0, 400)
		for i := range 400 {
			start := time.Now()
			_, _ = hedge.Do(t.Context(), p, func(ctx context.Context) (int, error) {
				n, _ := retry.Attempt(ctx)
				d := time.Duration(10+i%10) * ms
				if i%50 == 49 && n == 1 {
					d = sec // one in fifty hangs
				}
				select {
				case <-time.After(d):
				case <-ctx.Done():
				}
				return n, ctx.Err()
			})
			took = append(took, time.Since(start))
		}
		slow := 0
		for _, d := range took[50:] {
			if d >= 100*ms {
				slow++
			}
		}
		if n := hedged.Load(); slow != 0 || n < 7 || n > 40 {
			t.Errorf("%d slow calls after the samples, %d hedges; want none, 7 to 40 of 350", slow, n)
		}
	})
}

func TestOutermostOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		slow := func(context.Context) (int, error) {
			calls++
			time.Sleep(sec)
			return 1, nil
		}
		if _, err := hedge.Do(retry.WithAttempt(t.Context(), 1), must(t, hedge.Config{Delay: ms}), slow); err != nil || calls != 1 {
			t.Errorf("inner: %d calls, %v", calls, err)
		}
		calls = 0
		if _, err := hedge.Do(t.Context(), nil, slow); err != nil || calls != 1 {
			t.Errorf("nil policy: %d calls, %v", calls, err)
		}
	})
}

func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v; want the attempt's panic in this goroutine", r)
			}
		}()
		_, _ = hedge.Do(t.Context(), must(t, hedge.Config{Delay: sec}), func(context.Context) (int, error) { panic("boom") })
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		_, err := hedge.Do(ctx, must(t, hedge.Config{Delay: sec}), func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestRefused(t *testing.T) {
	var got []bool
	for _, c := range []hedge.Config{
		{}, {Delay: -1}, {Delay: 1, Quantile: .9}, {Quantile: 1}, {Quantile: -1}, {Quantile: math.NaN()},
		{Delay: 1, MaxHedges: 5}, {Delay: 1, MaxHedges: -1}, {Delay: 1, MinSamples: -1},
	} {
		_, err := hedge.New[int](c)
		got = append(got, errors.Is(err, hedge.ErrConfig))
	}
	if d := cmp.Diff([]bool{true, true, true, true, true, true, true, true, true}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func Example() {
	p, err := hedge.New[string](hedge.Config{Delay: 10 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	v, err := hedge.Do(context.Background(), p, func(ctx context.Context) (string, error) {
		if n, _ := retry.Attempt(ctx); n == 1 { // the first node hangs
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "from the second", nil
	})
	fmt.Println(v, err)
	// Output: from the second <nil>
}

func BenchmarkDo(b *testing.B) {
	b.ReportAllocs()
	p := must(b, hedge.Config{Delay: time.Minute})
	for b.Loop() {
		_, _ = hedge.Do(context.Background(), p, func(context.Context) (int, error) { return 1, nil })
	}
}
