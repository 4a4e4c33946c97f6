//go:build linux

package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/api"
)

// figure is one measured time beside what is promised of it.
type figure struct {
	what    string
	took    time.Duration
	promise time.Duration // negative = none
}

// experiment breaks something and waits until all is well again.
type experiment struct {
	name string
	run  func(t *testing.T, e *env) []figure
}

const recovery = 5 * time.Second

// leaderKilled kills the leader of etcd, and starts it again.
func leaderKilled(t *testing.T, e *env) []figure {
	m := e.etcd.members[etcdLeader(t, e)]
	t0 := time.Now()
	m.kill()
	without := e.converge(t, t0.Add(time.Millisecond))
	t1 := time.Now()
	m.start(t)
	return []figure{{"converged after kill -9 of etcd's leader", without, recovery},
		{"converged after it started again", e.converge(t, t1), recovery}}
}

// memberFrozen freezes the leader of etcd, the worst one, for a while.
func memberFrozen(t *testing.T, e *env) []figure {
	m := e.etcd.members[etcdLeader(t, e)]
	m.freeze(t)
	time.Sleep(2 * time.Second)
	m.thaw(t)
	return []figure{{"converged after SIGCONT of a frozen leader of etcd", e.converge(t, time.Now()), recovery}}
}

// endpointFrozen freezes each member in turn, so that the one which a client has
// its stream or its next call on is among them, and waits for clients and editors
// to get round it while it is frozen (field case watch-06: an endpoint accepts
// connections and does not answer).
func endpointFrozen(t *testing.T, e *env) []figure {
	var worst time.Duration
	for _, m := range e.etcd.members {
		t0 := time.Now()
		m.freeze(t)
		worst = max(worst, e.converge(t, t0.Add(time.Millisecond)))
		m.thaw(t)
		e.converge(t, time.Now())
	}
	return []figure{{"converged while one member of etcd is frozen, the worst of three", worst, 15 * time.Second}}
}

// allStopped stops every member for a while.
func allStopped(t *testing.T, e *env) []figure {
	for _, m := range e.etcd.members {
		m.kill()
	}
	time.Sleep(*outage)
	t0 := time.Now()
	for _, m := range e.etcd.members {
		m.start(t)
	}
	return []figure{{"converged after all of etcd started again", e.converge(t, t0), recovery}}
}

// compacted compacts etcd while one client is cut off.
func compacted(t *testing.T, e *env) []figure {
	e.cut(true)
	time.Sleep(500 * time.Millisecond)
	e.converged(t, len(e.clients)-1) // versions go on meanwhile
	ctx, cancel := timeout(t, 10*time.Second)
	defer cancel()
	got, err := e.etcd.client.Get(ctx, "x")
	if err == nil {
		_, err = e.etcd.client.Compact(ctx, got.Header.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	e.cut(false)
	return []figure{{"converged after a compaction during a client's disconnect", e.converge(t, t0), recovery}}
}

// cut cuts one client off from etcd, or lets it come back.
func (e *env) cut(cut bool) {
	for _, p := range e.proxies {
		p.Cut(cut)
	}
}

// converged waits until n clients took something new.
func (e *env) converged(t *testing.T, n int) {
	t.Helper()
	t0 := time.Now()
	eventually(t, "clients go on", time.Minute, func() bool {
		first, ok := e.firstAfter(t0)
		count := 0
		for _, c := range e.clients {
			if _, there := c.reached(first.ref.Version); ok && there {
				count++
			}
		}
		return count >= n
	})
}

// restored puts a backup back under running clients, with new servers that
// remember nothing, so that only clients show that the store went back; then an
// operator raises the epoch.
func restored(t *testing.T, e *env) []figure {
	e.etcd.saveAll(t)
	e.converge(t, time.Now())
	e.converge(t, time.Now())
	for _, s := range e.servers {
		s.kill()
	}
	e.etcd.restoreAll(t)
	t0 := time.Now()
	for i := range e.servers {
		e.serve(t, i)
	}
	eventually(t, "a server says that the store went back", time.Minute, func() bool { return unready(t, e) })
	shown := time.Since(t0)
	t1 := time.Now()
	ctx, cancel := timeout(t, time.Minute)
	defer cancel()
	r, err := e.api.Bump(ctx, cluster, api.BumpRequest{}, api.EditOptions{Why: "restored a backup"})
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	e.since = time.Now()
	e.mu.Unlock()
	var last time.Time
	for _, c := range e.clients {
		eventually(t, c.name+" takes "+r.Version.String(), time.Minute, func() bool {
			at, ok := c.reached(r.Version)
			if at.After(last) {
				last = at
			}
			return ok
		})
	}
	e.converge(t, time.Now())
	return []figure{{"a restored store was noticed", shown, time.Minute},
		{"converged after the operator's bump", last.Sub(t1), time.Minute},
		{"converged after the restore, bump included", last.Sub(t0), time.Minute}}
}

// unready reports whether a server says that the store went back.
func unready(t *testing.T, e *env) bool {
	for _, addr := range e.addrs {
		if status, body := get(t, "http://"+addr+"/readyz"); status == 503 && strings.Contains(body, "went_back") {
			return true
		}
	}
	return false
}

// serverTerminated ends the shardd that publishes, by SIGTERM.
func serverTerminated(t *testing.T, e *env) []figure {
	return handOver(t, e, "SIGTERM", 500*time.Millisecond, (*program).terminate)
}

// serverKilled ends it by kill -9: its lease of 5 s has to end first.
func serverKilled(t *testing.T, e *env) []figure {
	return handOver(t, e, "kill -9", 6*time.Second, (*program).kill)
}

func handOver(t *testing.T, e *env, how string, promise time.Duration, end func(*program)) []figure {
	i := -1
	eventually(t, "a server leads", time.Minute, func() bool { i = e.leader(t); return i >= 0 })
	t0 := time.Now()
	end(e.servers[i])
	eventually(t, "the other server leads", time.Minute, func() bool { return e.leader(t) == 1-i })
	took := time.Since(t0)
	all := e.converge(t, t0.Add(time.Millisecond))
	<-e.servers[i].ended
	if err := e.servers[i].err; how == "SIGTERM" && err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	e.serve(t, i)
	return []figure{{"the other shardd leads after " + how, took, promise},
		{"converged after " + how + " of the leading shardd", all, promise + recovery}}
}

func etcdLeader(t *testing.T, e *env) int {
	t.Helper()
	i := -1
	eventually(t, "etcd has a leader", time.Minute, func() bool { i = e.etcd.leader(t); return i >= 0 })
	return i
}
