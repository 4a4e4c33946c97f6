//go:build linux

package faults

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// agentGrace is how long an agent stays after its node owns nothing: the time in
// which the last client has to have the version that says so. A test machine may be
// slow; the percentiles are about a second.
func agentGrace() time.Duration {
	if *runs > 0 {
		return time.Second
	}
	return 5 * time.Second
}

// agent starts an agent and waits until its node owns keys in every client's
// topology, and requests go there. Its weight is about that of the others: of a
// node that owns one key in a thousand, a busy machine's clients see nothing for
// a minute.
func (e *env) agent(t *testing.T, id string) *program {
	t.Helper()
	p := startProgram(t, false, "agent", "--id", id, "--addr", "127.0.0.1:1", "--cluster", cluster, "--weight", "150",
		"--etcd", strings.Join(e.etcd.endpoints(), ","), "--ttl", leaseTTL.String(), "--drain-grace", agentGrace().String())
	t0 := time.Now()
	for _, c := range e.clients {
		eventually(t, c.name+" knows that "+id+" owns keys", time.Minute, func() bool { return c.owns(id) })
	}
	eventually(t, id+" is routed to by all", time.Minute, func() bool {
		for _, c := range e.clients {
			if !c.seen(id).After(t0) {
				return false
			}
		}
		return true
	})
	return p
}

// lastRequest returns when the last request went to the node, after it has been
// quiet for a while everywhere.
func (e *env) lastRequest(t *testing.T, id string) time.Time {
	t.Helper()
	var last time.Time
	eventually(t, "no request goes to "+id, time.Minute, func() bool {
		for _, c := range e.clients {
			if at := c.seen(id); at.After(last) {
				last = at
			}
		}
		return time.Since(last) > 700*time.Millisecond
	})
	return last
}

// agentTerminated ends an agent by SIGTERM: it drains its node first.
func agentTerminated(t *testing.T, e *env) []figure {
	p := e.agent(t, "leaver")
	t0 := time.Now()
	p.terminate()
	<-p.ended
	gone := time.Now()
	if p.err != nil {
		t.Errorf("the agent: %v", p.err)
	}
	last := e.lastRequest(t, "leaver")
	if last.After(gone) {
		t.Errorf("a request went to the node %s after its agent had drained it", last.Sub(gone))
	}
	return []figure{{"last request to a node after SIGTERM of its agent", last.Sub(t0), -1},
		{"the agent left after SIGTERM", gone.Sub(t0), -1},
		{"requests to a node after its agent left", max(0, last.Sub(gone)), 0}}
}

// agentKilled ends an agent by kill -9: its lease ends, then it settles.
func agentKilled(t *testing.T, e *env) []figure {
	p := e.agent(t, "victim")
	ended := e.gone(t, e.keys(t).Live("victim"))
	t0 := time.Now()
	p.kill()
	lease := (<-ended).Sub(t0)
	last := e.lastRequest(t, "victim")
	var owned time.Time
	for _, c := range e.clients {
		eventually(t, c.name+" knows that the victim owns nothing", time.Minute, func() bool { return !c.owns("victim") })
		owned = time.Now()
	}
	return []figure{{"the lease of a killed agent ended", lease, leaseTTL},
		{"last request to a node after kill -9 of its agent", last.Sub(t0), leaseTTL + settleTime},
		{"out of every client's topology after kill -9 of its agent", owned.Sub(t0), leaseTTL + settleTime}}
}

// gone tells when a key is gone.
func (e *env) gone(t *testing.T, key string) <-chan time.Time {
	at := make(chan time.Time, 1)
	ctx, cancel := timeout(t, time.Minute)
	watch := e.etcd.client.Watch(clientv3.WithRequireLeader(ctx), key)
	go func() {
		defer cancel()
		for resp := range watch {
			for _, ev := range resp.Events {
				if ev.Type == clientv3.EventTypeDelete {
					at <- time.Now()
					return
				}
			}
		}
		close(at)
	}()
	return at
}

// get returns the status and the body, 0 if there is no answer.
func get(t *testing.T, url string) (int, string) {
	ctx, cancel := timeout(t, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}
