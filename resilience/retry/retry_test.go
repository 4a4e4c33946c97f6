package retry_test

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
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/resilience/backoff"
	"github.com/shardd/shardd/resilience/budget"
	"github.com/shardd/shardd/resilience/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sec, ms = time.Second, time.Millisecond

var (
	errDown = retry.As(retry.Unavailable, errors.New("503"))
	errSlow = retry.As(retry.Timeout, errors.New("504"))
	errApp  = errors.New("no such table")
)

func must(t testing.TB, c retry.Config) *retry.Policy {
	t.Helper()
	p, err := retry.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fixedWait is 100, 200, 400 ms.
var fixedWait = backoff.Config{Jitter: backoff.None}

// run makes a call that fails with the given errors, one an attempt, and returns
// the attempts' numbers and times, what was decided and the error.
func run(ctx context.Context, t testing.TB, c retry.Config, m retry.Mark, errs ...error) (nums []int, at []time.Duration, then []retry.Decision, err error) {
	t.Helper()
	c.OnFailure = func(e retry.Event) { then = append(then, e.Then) }
	start := time.Now()
	v, err := retry.Do(ctx, must(t, c), m, func(ctx context.Context) (int, error) {
		n, _ := retry.Attempt(ctx)
		nums, at = append(nums, n), append(at, time.Since(start))
		if len(nums) > len(errs) {
			return 42, nil
		}
		return 0, errs[len(nums)-1]
	})
	if err == nil && v != 42 {
		t.Errorf("value %d with no error", v)
	}
	return nums, at, then, err
}

func TestDo(t *testing.T) {
	f := func(c retry.Config, m retry.Mark, timeout time.Duration, errs []error, wantAt []time.Duration, wantThen []retry.Decision, wantErr error) {
		t.Helper()
		c.Backoff = fixedWait
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			nums, at, then, err := run(ctx, t, c, m, errs...)
			if !errors.Is(err, wantErr) || wantErr == nil && err != nil {
				t.Errorf("error %v; want %v", err, wantErr)
			}
			for i, n := range nums {
				if n != i+1 && c.Attempts != 1 {
					t.Errorf("attempts are numbered %v", nums)
				}
			}
			if d := cmp.Diff(wantAt, at); d != "" {
				t.Errorf("times (-want +got):\n%s", d)
			}
			if d := cmp.Diff(wantThen, then, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("decisions (-want +got):\n%s", d)
			}
		})
	}
	type errs = []error
	type at = []time.Duration
	type then = []retry.Decision
	const plain, idem, hour = retry.Plain, retry.Idempotent, time.Hour
	f(retry.Config{}, plain, hour, nil, at{0}, nil, nil)
	f(retry.Config{}, plain, hour, errs{errDown}, at{0, 100 * ms}, then{retry.Retry}, nil)
	f(retry.Config{}, plain, hour, errs{errDown, errDown}, at{0, 100 * ms, 300 * ms}, then{retry.Retry, retry.Retry}, nil)
	f(retry.Config{}, plain, hour, errs{errDown, errDown, errDown}, at{0, 100 * ms, 300 * ms}, then{retry.Retry, retry.Retry, retry.Exhausted}, errDown)
	f(retry.Config{}, plain, hour, errs{errSlow}, at{0}, then{retry.NotSafe}, errSlow)
	f(retry.Config{}, idem, hour, errs{errSlow}, at{0, 100 * ms}, then{retry.Retry}, nil)
	f(retry.Config{}, plain, hour, errs{errDown, errSlow}, at{0, 100 * ms}, then{retry.Retry, retry.NotSafe}, errSlow)
	f(retry.Config{}, idem, hour, errs{errApp}, at{0}, then{retry.NotSafe}, errApp)
	f(retry.Config{Attempts: 1}, plain, hour, errs{errDown}, at{0}, nil, errDown)
	f(retry.Config{}, plain, 50*ms, errs{errDown}, at{0}, then{retry.NoTime}, errDown)
	f(retry.Config{}, plain, 250*ms, errs{errDown, errDown}, at{0, 100 * ms}, then{retry.Retry, retry.NoTime}, errDown)
	push := func(d time.Duration) error { return &retry.Error{Kind: retry.Unavailable, Pushback: d, Err: errApp} }
	f(retry.Config{}, plain, hour, errs{push(-1)}, at{0}, then{retry.PushedBack}, errApp)
	f(retry.Config{}, plain, hour, errs{push(3 * sec)}, at{0, 3 * sec}, then{retry.Retry}, nil)
	f(retry.Config{}, plain, hour, errs{push(ms)}, at{0, 100 * ms}, then{retry.Retry}, nil)
	none, err := budget.New(budget.Config{Share: -1, Min: -1})
	if err != nil {
		t.Fatal(err)
	}
	f(retry.Config{Budget: none}, plain, hour, errs{errDown}, at{0}, then{retry.NoBudget}, errDown)
}

func TestNilPolicyIsNotAsked(t *testing.T) {
	calls := 0
	_, err := retry.Do(t.Context(), nil, retry.Idempotent, func(ctx context.Context) (int, error) {
		if _, ok := retry.Attempt(ctx); ok {
			t.Error("stamped although nobody asked for retries")
		}
		calls++
		return 0, errDown
	})
	if calls != 1 || !errors.Is(err, errDown) {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(t, retry.Config{AttemptTimeout: sec, Backoff: fixedWait})
		calls := 0
		v, err := retry.Do(t.Context(), p, retry.Idempotent, func(ctx context.Context) (string, error) {
			if calls++; calls < 3 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "ok", nil
		})
		if v != "ok" || err != nil || calls != 3 {
			t.Errorf("%q, %v after %d calls", v, err, calls)
		}
	})
}

// TestCancelWhileWaiting gives the attempt back to the budget, and both errors.
func TestCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := budget.New(budget.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*ms, cancel)
		_, at, _, err := run(ctx, t, retry.Config{Budget: b, Backoff: fixedWait}, retry.Plain, errDown)
		if len(at) != 1 || !errors.Is(err, context.Canceled) || !errors.Is(err, errDown) {
			t.Errorf("%d attempts, %v", len(at), err)
		}
		if s := b.Stats(0); s.Retries != 0 || s.Requests != 1 {
			t.Errorf("%+v; want the retry refunded", s)
		}
	})
}

// TestCancelDuringAttempt keeps what the attempt returned.
func TestCancelDuringAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		v, err := retry.Do(ctx, must(t, retry.Config{}), retry.Plain, func(context.Context) (string, error) {
			if calls++; calls == 1 {
				return "", errDown
			}
			cancel()
			return "made it", nil
		})
		if v != "made it" || err != nil {
			t.Errorf("%q, %v; want the answer that came", v, err)
		}
	})
}

func TestPanicGoesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		defer func() {
			if r := recover(); r != "boom" || calls != 2 {
				t.Errorf("recovered %v after %d calls", r, calls)
			}
		}()
		_, _ = retry.Do(t.Context(), must(t, retry.Config{}), retry.Plain, func(context.Context) (int, error) {
			if calls++; calls == 1 {
				return 0, errDown
			}
			panic("boom")
		})
	})
}

// layers sends requests through n layers that each retry; travel says whether the
// attempt number goes along from one to the next. All calls fail at the end. It
// returns the calls that arrive there.
func layers(t *testing.T, n, requests int, travel bool, b func() *budget.Budget) (arrived int64) {
	var leaf atomic.Int64
	call := func(ctx context.Context) error {
		leaf.Add(1)
		return errDown
	}
	for range n {
		p := must(t, retry.Config{Budget: b(), Clock: func() time.Duration { return 0 }})
		inner := call
		call = func(ctx context.Context) error { // the server of this layer, asked over a wire
			header := map[string]string{}
			if travel {
				retry.Inject(ctx, retry.HeaderAttempt, func(k, v string) { header[k] = v })
			}
			ctx = retry.Extract(context.Background(), func(k string) string { return header[k] })
			_, err := retry.Do(ctx, p, retry.Plain, func(ctx context.Context) (int, error) { return 0, inner(ctx) })
			return err
		}
	}
	for range requests {
		_ = call(t.Context())
	}
	return leaf.Load()
}

// TestLayers is the storm: three nested layers of three attempts send 27 requests
// for one; with the number travelling and a budget of a tenth, 1.1.
func TestLayers(t *testing.T) {
	endless := func() *budget.Budget {
		b, _ := budget.New(budget.Config{Share: 1000})
		return b
	}
	tenth := func() *budget.Budget {
		b, _ := budget.New(budget.Config{Share: .1, Min: -1})
		return b
	}
	f := func(travel bool, b func() *budget.Budget, want, most float64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			const requests = 1000
			got := float64(layers(t, 3, requests, travel, b)) / requests
			t.Logf("number travels %v: %.3f at the end for one at the front", travel, got)
			if got < want || got > most {
				t.Errorf("number travels %v: %v times; want %v to %v", travel, got, want, most)
			}
		})
	}
	f(false, endless, 27, 27)
	f(true, endless, 3, 3)
	f(true, tenth, 1.05, 1.1)
}

func TestRefused(t *testing.T) {
	for _, c := range []retry.Config{{Attempts: -1}, {Attempts: 1000}, {AttemptTimeout: -1}} {
		if _, err := retry.New(c); !errors.Is(err, retry.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
	if _, err := retry.New(retry.Config{Backoff: backoff.Config{Factor: math.NaN()}}); !errors.Is(err, backoff.ErrConfig) {
		t.Errorf("bad backoff: %v", err)
	}
}

func Example() {
	p, err := retry.New(retry.Config{Backoff: backoff.Config{Base: time.Millisecond}})
	if err != nil {
		panic(err)
	}
	tries := 0
	v, err := retry.Do(context.Background(), p, retry.Plain, func(ctx context.Context) (string, error) {
		n, _ := retry.Attempt(ctx) // goes into retry.HeaderAttempt by retry.Inject
		tries = n
		if n == 1 {
			return "", retry.As(retry.KindOfHTTP(503), errors.New("busy"))
		}
		return "value", nil
	})
	fmt.Println(v, err, tries)
	// Output: value <nil> 2
}

func BenchmarkDo(b *testing.B) {
	p := must(b, retry.Config{})
	ctx := context.Background()
	fn := func(context.Context) (int, error) { return 1, nil }
	b.Run("success", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = retry.Do(ctx, p, retry.Plain, fn)
		}
	})
	b.Run("inner", func(b *testing.B) {
		b.ReportAllocs()
		ctx := retry.WithAttempt(ctx, 1)
		for b.Loop() {
			_, _ = retry.Do(ctx, p, retry.Plain, fn)
		}
	})
}

// Each failed attempt and what is done about it, for a log. The other side asks
// to be left alone for a while.
func ExampleEvent() {
	p, err := retry.New(retry.Config{Backoff: backoff.Config{Base: time.Millisecond}, OnFailure: func(e retry.Event) {
		then := e.Then
		fmt.Println(e.Attempt, e.Kind, e.Err, "->", then, e.Delay)
	}})
	if err != nil {
		panic(err)
	}
	_, err = retry.Do(context.Background(), p, retry.Plain, func(ctx context.Context) (int, error) {
		if n, _ := retry.Attempt(ctx); n == 1 {
			return 0, &retry.Error{Kind: retry.KindOfHTTP(503), Pushback: 20 * time.Millisecond, Err: errors.New("busy")}
		}
		return 0, retry.As(retry.KindOfHTTP(400), errors.New("bad request"))
	})
	var last *retry.Error
	fmt.Println(errors.As(err, &last), last.Kind)
	// Output:
	// 1 unavailable busy -> retry 20ms
	// 2 unknown bad request -> not-safe 0s
	// true unknown
}
