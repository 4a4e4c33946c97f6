package httpsource_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
)

// hangs accepts connections and requests, and never answers.
func hangs() http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

// TestHanging: of several servers one or two hang, in every place; they cost
// half a second each, and only one if the client begins elsewhere.
func TestHanging(t *testing.T) {
	for _, hanging := range [][]int{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}} {
		synctest.Test(t, func(t *testing.T) {
			n, f, l := newNetwork(), newFake(), newLine(t)
			addrs := []string{"a:1", "b:1", "c:1"}
			for i, addr := range addrs {
				if slices.Contains(hanging, i) {
					n.serve(t, addr, hangs())
					continue
				}
				n.serve(t, addr, f.handler())
			}
			v1 := l.ring(3)
			f.send(v1)
			most := 600 * time.Millisecond
			if len(hanging) == 2 && hanging[1] == 1 { // the first two: one has to time out
				most = 3600 * time.Millisecond
			}
			c := client(t, n, nil, addrs...)
			if took := await(t, c, v1); took > most {
				t.Errorf("%v hang: ready after %v", hanging, took)
			}
			if len(f.requests()) != 1 {
				t.Errorf("%v hang: the others were asked %v", hanging, f.requests())
			}
		})
	}
}

// TestHangingLater: a server freezes, connections and new ones alike; the client
// is elsewhere after the silence and half a second.
func TestHangingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, c3, l := newNetwork(), newFake(), newFake(), newLine(t)
		n.serve(t, "a:1", a.handler())
		n.serve(t, "b:1", hangs())
		n.serve(t, "c:1", c3.handler())
		c := client(t, n, nil, "a:1", "b:1", "c:1")
		v1, v2 := l.ring(3), l.ring(4)
		a.send(v1)
		await(t, c, v1)
		a.beat(v1, time.Second)
		time.Sleep(time.Second)
		n.freeze("a:1")
		c3.send(v2)
		if took := await(t, c, v2); took > 3600*time.Millisecond {
			t.Errorf("the third server was found after %v", took)
		}
	})
}

// TestAllHang: nothing that hangs is asked more than once at a time, more than
// two never; problems are reported; one that comes back is found.
func TestAllHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNetwork(), newLine(t)
		var mu sync.Mutex
		now, most := map[string]int{}, 0
		hang := func(name string) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				now[name]++
				most = max(most, now["a"]+now["b"]+now["c"])
				if now[name] > 1 {
					t.Errorf("%s is asked %d times at once", name, now[name])
				}
				mu.Unlock()
				<-r.Context().Done()
				mu.Lock()
				now[name]--
				mu.Unlock()
			})
		}
		n.serve(t, "a:1", hang("a"))
		n.serve(t, "b:1", hang("b"))
		n.serve(t, "c:1", hang("c"))
		problems := 0
		c := client(t, n, []sdk.Option{sdk.WithHooks(sdk.Hooks{OnProblem: func(error) { problems++ }})}, "a:1", "b:1", "c:1")
		time.Sleep(30 * time.Second)
		if err := c.State().Problem; !errors.Is(err, membership.ErrUnreachable) {
			t.Fatal(err)
		}
		n.down("b:1")
		f := newFake()
		n.serve(t, "b:1", f.handler())
		v1 := l.ring(3)
		f.send(v1)
		if took := await(t, c, v1); took > 4*time.Second {
			t.Errorf("found after %v", took)
		}
		c.Close()
		mu.Lock()
		defer mu.Unlock()
		if most > 2 || problems < 10 {
			t.Errorf("%d servers were asked at once, %d problems reported", most, problems)
		}
	})
}

// TestSlowServer: one that takes its time to accept is followed if its rival
// refuses, and the rival's reason is reported.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, l := newNetwork(), newFake(), newFake(), newLine(t)
		a.setRefuse(func(http.ResponseWriter, *http.Request) bool { time.Sleep(2 * time.Second); return false })
		b.setRefuse(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "5")
			fail(w, api.CodeStopping)
			return true
		})
		n.serve(t, "a:1", a.handler())
		n.serve(t, "b:1", b.handler())
		var got []error
		c := client(t, n, []sdk.Option{sdk.WithHooks(sdk.Hooks{OnProblem: func(err error) { got = append(got, err) }})}, "a:1", "b:1")
		v1 := l.ring(3)
		a.send(v1)
		if took := await(t, c, v1); took > 2100*time.Millisecond {
			t.Errorf("ready after %v", took)
		}
		c.Close()
		var e *api.Error
		if len(got) != 1 || !errors.As(got[0], &e) || e.Code != api.CodeStopping || len(b.requests()) != 1 {
			t.Errorf("reported %v", got)
		}
	})
}

// TestBothAccept: of two that accept at the same moment one is followed, and the
// other's stream is closed.
func TestBothAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, l := newNetwork(), newFake(), newFake(), newLine(t)
		a.setRefuse(func(http.ResponseWriter, *http.Request) bool { time.Sleep(500 * time.Millisecond); return false })
		var open atomic.Int32
		counted := func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				open.Add(1)
				defer open.Add(-1)
				h.ServeHTTP(w, r)
			})
		}
		n.serve(t, "a:1", counted(a.handler()))
		n.serve(t, "b:1", counted(b.handler()))
		c := client(t, n, nil, "a:1", "b:1")
		v1, v2 := l.ring(3), l.ring(4)
		a.send(v1)
		b.send(v1)
		await(t, c, v1)
		synctest.Wait()
		if got := open.Load(); got != 1 {
			t.Errorf("%d watches are open", got)
		}
		a.send(v2)
		b.send(v2)
		await(t, c, v2)
	})
}

// TestRetryAfterSpread: clients that a server sent away together do not come
// back together, and none comes before its time.
func TestRetryAfterSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 50
		n, f := newNetwork(), newFake()
		var mu sync.Mutex
		var at []time.Duration
		start := time.Now()
		f.setRefuse(func(w http.ResponseWriter, _ *http.Request) bool {
			mu.Lock()
			at = append(at, time.Since(start))
			mu.Unlock()
			w.Header().Set("Retry-After", "20")
			fail(w, api.CodeStopping)
			return true
		})
		n.serve(t, "a:1", f.handler())
		for i := range clients {
			src, err := httpsource.New("cache", []string{"a:1"}, httpsource.WithTransport(n.transport(t)),
				httpsource.WithChance(func() float64 { return float64(i) / clients }))
			if err != nil {
				t.Fatal(err)
			}
			c, err := sdk.New(src)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		time.Sleep(21 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		moments := map[string]bool{}
		for _, d := range at[clients:] {
			if d < 20*time.Second || d > 20600*time.Millisecond {
				t.Errorf("a client came back after %v", d)
			}
			moments[fmt.Sprint(d.Round(10*time.Millisecond))] = true
		}
		if len(at) != 2*clients || len(moments) < clients/2 {
			t.Errorf("%d requests; %d clients came back at %d moments", len(at), clients, len(moments))
		}
	})
}
