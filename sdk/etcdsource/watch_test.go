package etcdsource_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/etcdsource"
	"github.com/shardd/shardd/topology"
)

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]etcdsource.Config{
		"no cluster":   {Endpoints: []string{"x"}},
		"bad cluster":  {Cluster: "a/b", Endpoints: []string{"x"}},
		"no endpoints": {Cluster: "c"},
		"bad prefix":   {Cluster: "c", Endpoints: []string{"x"}, Prefix: "no-slash"},
	} {
		if _, err := etcdsource.New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFollow(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	f := follow(t, etcdsource.Config{Endpoints: []string{server.Endpoint()}}, topology.Ref{}, nil)
	f.problem(etcdsource.ErrNoVersion, "cluster c")
	f.silent()
	first := w.publish()
	f.want(first)
	f.confirmed()
	f.want(w.weight(2))
	f.want(w.weight(3))
	f.stop()
}

// TestSkips: a slow caller gets the newest, with proof, and a change that moves
// nothing comes too.
func TestSkips(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	w.publish()
	entered, release := make(chan bool, 1), make(chan bool)
	calls := 0
	f := follow(t, etcdsource.Config{Client: server.Client()}, topology.Ref{}, func(*topology.Topology) error {
		if calls++; calls == 1 {
			entered <- true
			<-release
		}
		return nil
	})
	<-entered
	var last *topology.Topology
	for i := range 20 {
		last = w.weight(uint32(i + 2))
	}
	close(release)
	f.next()
	for f.next().Digest() != last.Digest() {
	}
	f.confirmed()
	if calls > 15 {
		t.Errorf("%d calls for 20 versions behind a slow one", calls)
	}
	w.declare(membership.ChangeNode("n1", func(n *topology.Node) error { n.Addr = "10.0.0.1:1"; return nil }))
	f.want(w.publish())
}

// TestPresents: what is held decides what is delivered.
func TestPresents(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	first := w.publish()
	w.weight(2)
	newest := w.weight(3)
	ref := func(change func(*topology.Ref)) topology.Ref {
		r := first.Ref()
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		have topology.Ref
		want error // nil = the newest comes
	}{
		"an ancestor":     {first.Ref(), nil},
		"a lower epoch":   {ref(func(r *topology.Ref) { r.Version.Epoch = 0 }), nil},
		"another cluster": {ref(func(r *topology.Ref) { r.ClusterID[0]++ }), nil}, // the client refuses it by name
		"another digest":  {ref(func(r *topology.Ref) { r.Digest[0]++ }), sdk.ErrForked},
		"another history": {ref(func(r *topology.Ref) { r.History++ }), sdk.ErrForked},
		"the newest seq, another digest": {topology.Ref{ClusterID: newest.ClusterID(), History: newest.Ref().History,
			Version: newest.Version(), Digest: first.Digest()}, sdk.ErrForked},
		"a newer version": {ref(func(r *topology.Ref) { r.Version.Seq = 9 }), sdk.ErrOlder},
		"a higher epoch":  {ref(func(r *topology.Ref) { r.Version.Epoch = 2 }), sdk.ErrOlder},
	} {
		t.Run(name, func(t *testing.T) {
			f := follow(t, etcdsource.Config{Client: server.Client()}, c.have, nil)
			if c.want == nil {
				f.want(newest)
				return
			}
			f.problem(c.want, "")
			f.silent()
		})
	}
	f := follow(t, etcdsource.Config{Client: server.Client()}, newest.Ref(), nil)
	f.confirmed()
}

// TestRefused: what the caller refuses is not offered again, the next version
// is, from what was held before.
func TestRefused(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	w.publish()
	calls := map[topology.Version]int{}
	f := follow(t, etcdsource.Config{Client: server.Client(), Poll: 10 * time.Millisecond}, topology.Ref{}, func(t *topology.Topology) error {
		calls[t.Version()]++
		if t.Version().Seq == 2 {
			return errors.New("no")
		}
		return nil
	})
	f.next()
	w.weight(2)
	time.Sleep(100 * time.Millisecond) // some polls
	f.want(w.weight(3))
	if calls[topology.Version{Epoch: 1, Seq: 2}] > 1 {
		t.Errorf("a refused version was offered again: %v", calls)
	}
}

// TestSdk02: a missing, empty or broken key is not an empty cluster, which is a
// version that says so; after each the source recovers.
func TestSdk02(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	w.publish()
	f := follow(t, etcdsource.Config{Client: server.Client()}, topology.Ref{}, nil)
	f.next()
	good := w.get(w.keys.Head())
	for _, bad := range []string{"", "{", `{"nodes":[]}`, `{"version":"1.7","history":"00000000000000aa","digest":"00000000000000000000000000000001"}`} {
		f.forget()
		w.put(w.keys.Head(), bad)
		f.problem(nil, "cluster c")
		w.put(w.keys.Head(), good)
		f.confirmed()
	}
	if _, err := server.Client().Delete(t.Context(), w.keys.Head()); err != nil {
		t.Fatal(err)
	}
	f.problem(etcdsource.ErrNoVersion, "cluster c")
	w.put(w.keys.Head(), good)
	f.confirmed()
	for range 2 { // 5 -> 0 -> 5
		empty := membership.Edit{Apply: func(d topology.Declared) (topology.Declared, error) {
			d.Nodes = nil
			return d, nil
		}}
		w.declare(empty)
		f.want(w.publish())
		w.declare(membership.AddNode(topology.Node{ID: "n0", Weight: 1}))
		f.want(w.publish())
	}
}

// TestDamaged: contents that lost their digest, or a head that points at a
// topology of another cluster, are not delivered.
func TestDamaged(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	w.publish()
	f := follow(t, etcdsource.Config{Client: server.Client()}, topology.Ref{}, nil)
	f.next()
	second := w.weight(2)
	f.next()
	f.stop()
	table := w.keys.Part(second.Objects()[0].Digest(), 0)
	whole := w.get(table)
	w.put(table, whole[:len(whole)-1]+"x")
	g := follow(t, etcdsource.Config{Client: server.Client()}, topology.Ref{}, nil)
	g.problem(etcdkv.ErrCorrupt, "")
	g.silent()
	w.put(table, whole)
	g.want(second)
}

func TestManySources(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	first := w.publish()
	var all []*follower
	for range 40 {
		all = append(all, follow(t, etcdsource.Config{Client: server.Client(), Poll: time.Minute}, topology.Ref{}, nil))
	}
	for _, f := range all {
		f.want(first)
	}
	last := w.weight(2)
	for _, f := range all {
		f.want(last)
	}
}

// TestClient follows with the real client: routes go on by the newest version.
func TestClient(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	w.publish()
	source, err := etcdsource.New(etcdsource.Config{Cluster: "c", Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := sdk.New(source)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if err := client.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Route("key"); err != nil {
		t.Error(err)
	}
	last := w.weight(2)
	for client.State().Held.Version != last.Version() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if got := client.State(); got.Held != last.Ref() {
		t.Errorf("state %s, want %s", fmt.Sprint(got), last.Ref())
	}
}

// TestAway: while etcd is out of reach nothing is delivered and the problem is
// reported; afterwards the newest comes, with proof, at the start too.
func TestAway(t *testing.T) {
	server := start(t)
	w := newWorld(t, server.Client())
	w.publish()
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint(), "http://"))
	proxy.Cut(true)
	c := etcdsource.Config{Endpoints: []string{etcdtest.BlackHole(t), proxy.Addr, etcdtest.FreeAddr(t)}}
	f := follow(t, c, topology.Ref{}, nil)
	f.problem(nil, "unreachable")
	f.silent()
	proxy.Cut(false)
	f.next()
	for i := range 3 {
		proxy.Cut(true)
		w.weight(uint32(10*i + 2))
		last := w.weight(uint32(10*i + 3))
		proxy.Cut(false)
		f.want(last)
	}
}
