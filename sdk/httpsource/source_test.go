package httpsource_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/topology"
)

func TestNew(t *testing.T) {
	for name, call := range map[string]func() (*httpsource.Source, error){
		"no servers":   func() (*httpsource.Source, error) { return httpsource.New("cache", nil) },
		"bad cluster":  func() (*httpsource.Source, error) { return httpsource.New("a/b", []string{"127.0.0.1:1"}) },
		"bad address":  func() (*httpsource.Source, error) { return httpsource.New("cache", []string{"127.0.0.1:1", "ftp://x"}) },
		"empty server": func() (*httpsource.Source, error) { return httpsource.New("cache", []string{""}) },
	} {
		if _, err := call(); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestPresents: the source says what its client holds, each time it connects.
func TestPresents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, l := newNetwork(), newFake(), newLine(t)
		n.serve(t, "a:1", f.handler())
		c := client(t, n, nil, "a:1")
		first, second := l.ring(3), l.ring(4)
		f.send(first)
		await(t, c, first)
		f.lines <- hangUp
		f.send(second)
		await(t, c, second)
		want := []string{"/v1/clusters/cache/watch?deltas=all",
			fmt.Sprintf("/v1/clusters/cache/watch?after=1.1&deltas=all&digest=%s&id=%s", first.Digest(), first.ClusterID())}
		if diff := cmp.Diff(want, f.requests()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestReconnects: when a server goes, the next one is asked within a second;
// when all are gone, one that comes back is found within a second.
func TestReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, l := newNetwork(), newFake(), newFake(), newLine(t)
		n.serve(t, "a:1", a.handler())
		n.serve(t, "b:1", b.handler())
		c := client(t, n, nil, "a:1", "b:1")
		v1, v2, v3 := l.ring(3), l.ring(4), l.ring(5)
		a.send(v1)
		await(t, c, v1)
		time.Sleep(time.Minute / 30) // the stream has worked for a while
		n.down("a:1")
		b.send(v2)
		if took := await(t, c, v2); took > time.Second {
			t.Errorf("the other server was found after %v", took)
		}
		n.down("b:1")
		time.Sleep(time.Minute)
		if r, err := c.Route("k"); err != nil || r.Version() != v2.Version() {
			t.Fatalf("without servers: %v, %v", r.Version(), err)
		}
		if st := c.State(); !errors.Is(st.Problem, membership.ErrUnreachable) || c.Age() < 50*time.Second {
			t.Fatalf("%+v", st)
		}
		n.serve(t, "a:1", a.handler())
		a.send(v3)
		if took := await(t, c, v3); took > 1100*time.Millisecond {
			t.Errorf("the server that came back was found after %v", took)
		}
	})
}

// TestSilent: a stream that says nothing is given up after three heartbeats.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, l := newNetwork(), newFake(), newFake(), newLine(t)
		n.serve(t, "a:1", a.handler())
		n.serve(t, "b:1", b.handler())
		c := client(t, n, nil, "a:1", "b:1")
		v1, v2 := l.ring(3), l.ring(4)
		a.send(v1)
		await(t, c, v1)
		for range 10 {
			a.beat(v1, time.Second)
			time.Sleep(time.Second)
		}
		if age := c.Age(); age > 1100*time.Millisecond || c.State().Problem != nil {
			t.Fatalf("with heartbeats the age is %v, %+v", age, c.State())
		}
		n.freeze("a:1")
		b.send(v2)
		if took := await(t, c, v2); took > 4*time.Second {
			t.Errorf("silence was noticed after %v", took)
		}
		var silent bool
		for _, line := range a.requests() {
			silent = silent || strings.Contains(line, "watch")
		}
		if !silent {
			t.Fatal("the first server was not asked")
		}
	})
}

// TestRetryAfter: a server that asks to be left alone is.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, l := newNetwork(), newFake(), newLine(t)
		n.serve(t, "a:1", f.handler())
		f.setRefuse(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "20")
			fail(w, api.CodeStopping)
			return true
		})
		c := client(t, n, nil, "a:1")
		time.Sleep(19 * time.Second)
		if got := f.requests(); len(got) != 1 {
			t.Fatalf("asked %d times in 19 s", len(got))
		}
		f.setRefuse(nil)
		v1 := l.ring(3)
		f.send(v1)
		if took := await(t, c, v1); took > 2*time.Second {
			t.Errorf("took %v more", took)
		}
	})
}

// TestSec04: seeds that lead to another cluster are never followed, and both
// ids are named; with the id configured from the start, else from the first
// topology on.
func TestSec04(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, ours, theirs := newNetwork(), newLine(t), newLine(t)
		s1, s3 := newFake(), newFake()
		n.serve(t, "shardd1:1", s1.handler())
		n.serve(t, "shardd3:1", s3.handler())
		v1, other := ours.ring(3), theirs.ring(3)
		s1.send(v1)
		s3.send(other)
		problem := make(chan error, 1000)
		hooks := sdk.WithHooks(sdk.Hooks{OnRefused: func(e *sdk.RefusedError) { problem <- e }, OnProblem: func(err error) { problem <- err }})
		c := client(t, n, []sdk.Option{sdk.WithClusterID(ours.id), hooks}, "shardd3:1", "shardd1:1")
		if took := await(t, c, v1); took > time.Second {
			t.Errorf("the own cluster was found after %v", took)
		}
		err := <-problem
		if !errors.Is(err, sdk.ErrCluster) || !strings.Contains(err.Error(), ours.id.String()) || !strings.Contains(err.Error(), theirs.id.String()) {
			t.Fatalf("problem: %v", err)
		}
		n.down("shardd1:1")
		for range 20 {
			s3.send(theirs.ring(4))
			time.Sleep(500 * time.Millisecond)
			if r, err := c.Route("k"); err != nil || r.Topology().ClusterID() != ours.id {
				t.Fatalf("routes by another cluster: %v", err)
			}
		}
		// A server that knows the rule says so itself.
		s3.setRefuse(func(w http.ResponseWriter, _ *http.Request) bool { fail(w, api.CodeCluster); return true })
		time.Sleep(3 * time.Second)
		if err := c.State().Problem; !errors.Is(err, sdk.ErrCluster) && !errors.Is(err, membership.ErrUnreachable) {
			t.Fatal(err)
		}
	})
}

// TestUnproved: what a server cannot prove to descend from what is held is
// reported as what it is, and another server is asked.
func TestUnproved(t *testing.T) {
	for code, want := range map[api.Code]error{api.CodeForked: sdk.ErrForked, api.CodeOlder: sdk.ErrOlder, api.CodeCluster: sdk.ErrCluster} {
		synctest.Test(t, func(t *testing.T) {
			n, a, b, l := newNetwork(), newFake(), newFake(), newLine(t)
			n.serve(t, "a:1", a.handler())
			n.serve(t, "b:1", b.handler())
			var got []error
			c := client(t, n, []sdk.Option{sdk.WithHooks(sdk.Hooks{OnProblem: func(err error) { got = append(got, err) }})}, "a:1", "b:1")
			v1, v2 := l.ring(3), l.ring(4)
			a.send(v1)
			await(t, c, v1)
			a.setRefuse(func(w http.ResponseWriter, _ *http.Request) bool { fail(w, code); return true })
			b.setRefuse(func(w http.ResponseWriter, _ *http.Request) bool { fail(w, code); return true })
			a.lines <- hangUp
			time.Sleep(5 * time.Second)
			if c.Topology().Ref() != v1.Ref() || !errors.Is(c.State().Problem, want) {
				t.Fatalf("%s: %+v", code, c.State())
			}
			b.setRefuse(nil)
			b.send(v2)
			if took := await(t, c, v2); took > 2*time.Second {
				t.Errorf("%s: recovered after %v", code, took)
			}
			c.Close()
			if len(got) < 2 || !errors.Is(got[len(got)-1], want) {
				t.Errorf("%s: reported %v", code, got)
			}
		})
	}
}

// TestForkedServer: a copy of the store that went its own way is refused by the
// client itself, even if the server vouches for it, and left for another one.
func TestForkedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, l := newNetwork(), newFake(), newFake(), newLine(t)
		n.serve(t, "a:1", a.handler())
		n.serve(t, "b:1", b.handler())
		c := client(t, n, nil, "a:1", "b:1")
		v1 := l.ring(3)
		fork := l.copy()
		v2, forked := l.ring(4), fork.ring(5)
		v3, forked3 := l.ring(6), fork.ring(7)
		a.send(v1)
		await(t, c, v1)
		a.send(v2)
		await(t, c, v2)
		a.send(forked)
		a.send(forked3)
		b.send(v3)
		await(t, c, v3)
		if c.State().Refused == 0 {
			t.Fatal("nothing was refused")
		}
	})
}

// TestSdk02 is the field case over HTTP: no answer, no such cluster, broken
// answers, and a cluster that really has no nodes.
func TestSdk02(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, l := newNetwork(), newFake(), newLine(t)
		c := client(t, n, nil, "a:1") // nobody listens
		time.Sleep(3 * time.Second)
		if _, err := c.Route("k"); !errors.Is(err, sdk.ErrNotReady) || !errors.Is(c.State().Problem, membership.ErrUnreachable) {
			t.Fatalf("%v, %+v", err, c.State())
		}
		n.serve(t, "a:1", f.handler())
		good := l.ring(5)
		f.send(good)
		if took := await(t, c, good); took > 5*time.Second {
			t.Errorf("recovered after %v", took)
		}
		holds := func(name string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			if r, err := c.Route("k"); err != nil || r.Version() != good.Version() {
				t.Fatalf("%s: %v, %v", name, r.Version(), err)
			}
		}
		next := l.ring(6)
		whole := encode(api.Message{Type: api.MessageFull, ClusterID: next.ClusterID(), Version: next.Version(), Digest: next.Digest(), Encoded: next.Encode()})
		cut := encode(api.Message{Type: api.MessageFull, ClusterID: next.ClusterID(), Version: next.Version(), Digest: next.Digest(), Encoded: next.Encode()[:50]})
		for name, line := range map[string]string{"broken JSON": whole[:len(whole)/2], "empty line": "", "null": "null", "empty object": "{}",
			"half a topology": cut, "not ours": "<html>", "a type to come": `{"type":"patch","version":"1.2"}`, "an empty delta": `{"type":"delta","version":"1.2"}`} {
			f.lines <- line
			holds(name)
		}
		f.setRefuse(func(w http.ResponseWriter, _ *http.Request) bool { fail(w, api.CodeNoCluster); return true })
		f.lines <- hangUp
		holds("no such cluster")
		if !errors.Is(c.State().Problem, membership.ErrNoCluster) {
			t.Errorf("%v", c.State().Problem)
		}
		f.setRefuse(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true })
		holds("a proxy's error")
		f.setRefuse(nil)
		f.send(next)
		if took := await(t, c, next); took > 5*time.Second {
			t.Errorf("recovered after %v", took)
		}
		good = next

		empty := l.ring(0)
		f.send(empty)
		await(t, c, empty)
		if _, err := c.Route("k"); !errors.Is(err, sdk.ErrNoNodes) {
			t.Fatal(err)
		}
		back := l.ring(5)
		f.send(back)
		if took := await(t, c, back); took > 5*time.Second {
			t.Errorf("nodes came back after %v", took)
		}
		if _, err := c.Route("k"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestUnknown: a version of a later release is reported and skipped, and the
// stream stays.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, l := newNetwork(), newFake(), newLine(t)
		n.serve(t, "a:1", f.handler())
		c := client(t, n, nil, "a:1")
		v1 := l.ring(3)
		f.send(v1)
		await(t, c, v1)
		v2 := l.ring(4)
		later := []byte(strings.Replace(string(v2.Encode()), "ring/1", "ring/9", 1))
		f.lines <- encode(api.Message{Type: api.MessageFull, ClusterID: v2.ClusterID(), Version: v2.Version(), Digest: topology.Sum(later), Encoded: later})
		time.Sleep(time.Second)
		if err := c.State().Problem; !errors.Is(err, topology.ErrUnknown) || c.Topology().Ref() != v1.Ref() {
			t.Fatalf("%v", err)
		}
		f.beat(v2, time.Second) // the newest is not the one held: no confirmation
		time.Sleep(time.Second)
		if c.State().Problem == nil {
			t.Fatal("the problem was forgotten")
		}
		v3 := l.ring(5)
		f.send(v3)
		await(t, c, v3)
		if got := f.requests(); len(got) != 1 {
			t.Fatalf("the stream was given up: %v", got)
		}
	})
}

// TestTables: a table is fetched once, and again only when it changes.
func TestTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, l := newNetwork(), newFake(), newLine(t)
		n.serve(t, "a:1", f.handler())
		c := client(t, n, nil, "a:1")
		spec := topology.Spec{Algorithm: topology.Maglev, TableSize: 251}
		v1 := l.publish(spec, 3)
		f.send(v1)
		await(t, c, v1)
		spec.BoundedLoad = 1.5 // moves nothing
		v2 := l.publish(spec, 3)
		f.send(v2)
		await(t, c, v2)
		v3 := l.publish(spec, 4)
		f.send(v3)
		await(t, c, v3)
		if !c.Topology().Complete() {
			t.Fatal("tables are missing")
		}
		object := func(topo *topology.Topology) string {
			return "/v1/clusters/cache/objects/" + topo.Refs()[0].Digest.String()
		}
		want := []string{"/v1/clusters/cache/watch?deltas=all", object(v1), object(v3)}
		if diff := cmp.Diff(want, f.requests()); diff != "" {
			t.Fatal(diff)
		}
		// A table that cannot be had costs a new connection, nothing else.
		v4 := l.publish(spec, 5)
		f.lines <- encode(api.Message{Type: api.MessageFull, ClusterID: v4.ClusterID(), Version: v4.Version(), Digest: v4.Digest(), Encoded: v4.Encode()})
		time.Sleep(time.Second)
		if !errors.Is(c.State().Problem, membership.ErrNoVersion) || c.Topology().Ref() != v3.Ref() {
			t.Fatalf("%+v", c.State())
		}
		f.send(v4)
		await(t, c, v4)
	})
}

// TestCloseWhileConnecting: Close ends a Watch in whatever it does.
func TestCloseWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.serve(t, "a:1", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		c := client(t, n, nil, "a:1", "nobody:1")
		for _, d := range []time.Duration{0, 10 * time.Millisecond, 3200 * time.Millisecond} {
			time.Sleep(d)
		}
		start := time.Now()
		c.Close()
		if took := time.Since(start); took != 0 {
			t.Fatalf("Close took %v", took)
		}
	})
}
