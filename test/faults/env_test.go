//go:build linux

package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/sdk/etcdsource"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/topology"
)

const (
	cluster  = "cache"
	editors  = 100 * time.Millisecond // between two edits
	inFlight = 100                    // edits at once, when the store is away
	// Short times of members under leases, for the experiments on agents.
	leaseTTL, downTime, settleTime = 2 * time.Second, 300 * time.Millisecond, time.Second
)

// ack is an edit that was answered with its version.
type ack struct {
	sent, done time.Time
	ref        topology.Ref // history is not told
}

// env is what the experiments break.
type env struct {
	etcd    *etcd
	addrs   []string // of the servers
	servers []*program
	clients []*client
	proxies []*etcdtest.Proxy // before the members, for one of the clients
	api     *api.Client

	mu     sync.Mutex
	acks   []ack
	failed int       // edits without an answer in time
	since  time.Time // acks before are of a history that a restore has ended
}

// newEnv starts everything, and editing, until the test ends.
func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{etcd: startEtcd(t)}
	for i := range 2 {
		e.addrs = append(e.addrs, etcdtest.FreeAddr(t))
		e.servers = append(e.servers, nil)
		e.serve(t, i)
	}
	var err error
	e.api, err = api.NewClient(api.ClientConfig{Servers: e.addrs, Timeout: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.api.Close)
	d := topology.Declared{Cluster: cluster, Spec: topology.Spec{Algorithm: topology.Slots}}
	for i := range 5 {
		d.Nodes = append(d.Nodes, topology.Node{ID: node(i), Weight: 100})
	}
	ctx, cancel := timeout(t, time.Minute)
	defer cancel()
	if _, err := e.api.PutSpec(ctx, d, api.EditOptions{Wait: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	e.followAll(t)
	e.edit(t)
	return e
}

func node(i int) string { return fmt.Sprintf("node-%d", i) }

// serve starts server i (again).
func (e *env) serve(t *testing.T, i int) {
	t.Helper()
	e.servers[i] = startProgram(t, true, "serve", "--listen", e.addrs[i], "--etcd", strings.Join(e.etcd.endpoints(), ","),
		"--id", serverID(i), "--down", downTime.String(), "--settle", settleTime.String(), "--timeout", "30s")
}

func serverID(i int) string { return fmt.Sprintf("server-%d", i) }

// followAll starts the clients: three over etcd, one of them through proxies that
// can be cut, and three over HTTP.
func (e *env) followAll(t *testing.T) {
	t.Helper()
	var behind []string
	for _, m := range e.etcd.members {
		p := etcdtest.NewProxy(t, strings.TrimPrefix(m.url, "http://"))
		e.proxies = append(e.proxies, p)
		behind = append(behind, p.Addr)
	}
	for i, endpoints := range [][]string{e.etcd.endpoints(), e.etcd.endpoints(), behind} {
		s, err := etcdsource.New(etcdsource.Config{Cluster: cluster, Endpoints: endpoints})
		e.clients = append(e.clients, e.follow(t, fmt.Sprint("etcd client ", i), s, err))
	}
	for i := range 3 {
		s, err := httpsource.New(cluster, e.addrs)
		e.clients = append(e.clients, e.follow(t, fmt.Sprint("http client ", i), s, err))
	}
}

// edit changes the weight of one node every 100 ms, whatever becomes of the
// edits before.
func (e *env) edit(t *testing.T) {
	stop := make(chan struct{})
	room := make(chan struct{}, inFlight)
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(editors)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			select {
			case room <- struct{}{}:
				all.Go(func() {
					e.editOnce(t, n)
					<-room
				})
			default:
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		all.Wait()
	})
}

func (e *env) editOnce(t *testing.T, n int) {
	ctx, cancel := timeout(t, 12*time.Second)
	defer cancel()
	weight := uint32(101 + n%97)
	sent := time.Now()
	r, err := e.api.EditNode(ctx, cluster, node(n%5), api.VerbWeight, api.NodeEdit{Weight: &weight}, api.EditOptions{})
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || !r.Published {
		e.failed++
		return
	}
	e.acks = append(e.acks, ack{sent, time.Now(), topology.Ref{ClusterID: r.ClusterID, Version: r.Version, Digest: r.Digest}})
}

// firstAfter returns the lowest version that answers an edit sent after t0, and
// when it was answered.
func (e *env) firstAfter(t0 time.Time) (first ack, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.acks {
		if a.sent.After(t0) && (!ok || a.ref.Version.Compare(first.ref.Version) < 0) {
			first, ok = a, true
		}
	}
	return first, ok
}

// converge waits until all clients hold a version that answers an edit sent after
// t0, and returns the time from t0 until the last of them did.
func (e *env) converge(t *testing.T, t0 time.Time) time.Duration {
	t.Helper()
	var first ack
	eventually(t, "an edit is answered", time.Minute, func() (ok bool) {
		first, ok = e.firstAfter(t0)
		return ok
	})
	var last time.Time
	for _, c := range e.clients {
		eventually(t, c.name+" takes "+first.ref.String(), time.Minute, func() bool {
			at, ok := c.reached(first.ref.Version)
			if at.After(last) {
				last = at
			}
			return ok
		})
	}
	return last.Sub(t0)
}

// leader returns which server publishes, by the election key; -1 = none.
func (e *env) leader(t *testing.T) int {
	ctx, cancel := timeout(t, time.Second)
	defer cancel()
	keys := e.keys(t)
	got, err := e.etcd.client.Get(ctx, keys.Leader())
	if err != nil || len(got.Kvs) == 0 {
		return -1
	}
	var v struct{ ID string }
	if err := json.Unmarshal(got.Kvs[0].Value, &v); err != nil {
		t.Errorf("election key %q: %v", got.Kvs[0].Value, err)
	}
	for i := range e.servers {
		if v.ID == serverID(i) {
			return i
		}
	}
	return -1
}

func (e *env) keys(t *testing.T) etcdkv.Keys {
	t.Helper()
	keys, err := etcdkv.NewKeys("", cluster)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// check is the end of an experiment: nothing went backwards or failed at the
// clients, and the store's chain has every number once, with what clients and
// editors were told.
func (e *env) check(t *testing.T) {
	t.Helper()
	digests := map[topology.Ref]topology.Digest{}
	for _, c := range e.clients {
		c.check(t, digests)
	}
	if !t.Failed() {
		e.checkChain(t, digests)
	}
}

func (e *env) checkChain(t *testing.T, digests map[topology.Ref]topology.Digest) {
	t.Helper()
	e.mu.Lock()
	acks := slices.Clone(e.acks)
	since, failed := e.since, e.failed
	e.mu.Unlock()
	if len(acks) == 0 {
		t.Fatal("no edit was answered")
	}
	var epoch uint64
	for _, a := range acks {
		epoch = max(epoch, a.ref.Version.Epoch)
	}
	ctx, cancel := timeout(t, 20*time.Second)
	defer cancel()
	keys := e.keys(t)
	got, err := e.etcd.client.Get(ctx, keys.Links(epoch), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	chain := map[topology.Version]etcdkv.Link{}
	var top uint64
	for _, kv := range got.Kvs {
		v, err := topology.ParseVersion(strings.TrimPrefix(string(kv.Key), strings.TrimSuffix(keys.Links(epoch), fmt.Sprint(epoch, "."))))
		if err != nil {
			t.Fatal(err)
		}
		link, err := etcdkv.DecodeLink(kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		chain[v], top = link, max(top, v.Seq)
	}
	if uint64(len(chain)) != top {
		t.Errorf("the chain has %d links up to %d.%d", len(chain), epoch, top)
	}
	for number, digest := range digests {
		if link, ok := chain[number.Version]; number.Version.Epoch == epoch && (!ok || link.Digest != digest || link.History != number.History) {
			t.Errorf("a client took %s with %s of %s, the chain has %+v", number.Version, digest, number.History, link)
		}
	}
	for _, a := range acks {
		if link := chain[a.ref.Version]; a.sent.After(since) && a.ref.Version.Epoch == epoch && link.Digest != a.ref.Digest {
			t.Errorf("an editor was told %s, the chain has %s", a.ref, link.Digest)
		}
	}
	t.Logf("%d versions in epoch %d, %d edits answered, %d not", top, epoch, len(acks), failed)
}
