package etcdstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/etcdstore"
	"github.com/shardd/shardd/topology"
)

const memberTTL = 2 * time.Second

// buffer is a log that several goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// fleet is a cluster of one etcd with a controller that admits nodes.
type fleet struct {
	t     *testing.T
	ctx   context.Context
	store *etcdstore.Store
	log   buffer
}

func newFleet(t *testing.T, endpoint string) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	f := &fleet{t: t, ctx: ctx, store: open(t, endpoint, etcdstore.Options{TTL: time.Second})}
	if _, err := f.store.Create(ctx, one("c"), "", ""); err != nil {
		t.Fatal(err)
	}
	c, err := membership.NewController(membership.ControllerConfig{Store: f.store.Open("c"), Roster: f.store.Open("c").(membership.Roster), Elector: f.store, Cluster: "c", ID: "x",
		Admission: membership.AdmissionConfig{Join: 100 * time.Millisecond, Down: 200 * time.Millisecond, Settle: 500 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("controller: %v", err)
		}
	})
	return f
}

// register registers a node, as a process with an etcd client of its own.
func (f *fleet) register(endpoint, id string) *membership.Member {
	f.t.Helper()
	m, err := membership.Register(f.ctx, open(f.t, endpoint, etcdstore.Options{}).Open("c").(membership.Registrar), membership.Registration{ID: id, Addr: id + ":1", TTL: memberTTL,
		Logger: hclog.New(&hclog.LoggerOptions{Output: &f.log, Level: hclog.Info})})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = m.Close() })
	return m
}

// states returns the state of every node of the head; "" while there is none.
func (f *fleet) states() string {
	s, err := f.store.Open("c").Load(f.ctx)
	if err != nil || s.Head == nil || s.Applied != s.Generation {
		return ""
	}
	var out []string
	for _, n := range s.Head.Nodes() {
		out = append(out, n.ID+"="+n.State.String())
	}
	return strings.Join(out, " ")
}

func (f *fleet) eventually(when string, within time.Duration, ok func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, within)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("%s: not within %s: states %q\n%s", when, within, f.states(), f.log.String())
		}
	}
}

// TestMember01 is field case member-01 with a real etcd: outages of 0.6, 1.6 and
// 3 leases, twelve restarts, a record that is deleted and a lease that is
// revoked. The nodes are back within two leases, by themselves.
func TestMember01(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	f := newFleet(t, server.Endpoint)
	ids := []string{"n1", "n2", "n3"}
	members := map[string]*membership.Member{}
	for _, id := range ids {
		members[id] = f.register(server.Endpoint, id)
	}
	back := func(when string) {
		t.Helper()
		f.eventually(when, 2*memberTTL, func() bool {
			roll, err := f.store.Open("c").(membership.Roster).Roll(f.ctx)
			if err != nil || len(roll.Live) != 3 {
				return false
			}
			for i, id := range ids {
				if st := members[id].Status(); !st.Registered || roll.Live[i].Owner != st.Owner || roll.Live[i].Incarnation != st.Incarnation {
					return false
				}
			}
			return f.states() == "a=active n1=active n2=active n3=active"
		})
	}
	back("at first")
	for _, away := range []time.Duration{memberTTL * 6 / 10, memberTTL * 16 / 10, memberTTL * 3} {
		server.Stop(t)
		wait(t, away)
		server.Run(t)
		back(fmt.Sprint("after an outage of ", away))
	}
	for range 12 {
		server.Stop(t)
		server.Run(t)
	}
	back("after twelve restarts")
	r := &raw{c: dial(t, server.Endpoint), prefix: "/shardd"}
	losses := members["n1"].Status().Losses
	r.writeLive(t, "c", "n1", nil)
	f.eventually("the deletion is noticed", memberTTL, func() bool { return members["n1"].Status().Losses > losses })
	back("after its record was deleted")
	losses = members["n2"].Status().Losses
	r.endLease(t, "c", "n2")
	f.eventually("the revocation is noticed", memberTTL, func() bool { return members["n2"].Status().Losses > losses })
	back("after its lease was revoked")
	for _, want := range []string{"registration lost", "registered again"} {
		if !strings.Contains(f.log.String(), want) {
			t.Errorf("no log line %q", want)
		}
	}
}

func wait(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// TestMemberDies: a node whose process is gone without a word is out of the
// topology within lease and settle. Its successor at another address is refused
// until then, and one at the same address keeps its place.
func TestMemberDies(t *testing.T) {
	t.Parallel()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	f := newFleet(t, server.Endpoint())
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint(), "http://"))
	first := f.register(proxy.Addr, "n1")
	f.eventually("registered", 5*time.Second, func() bool { return f.states() == "a=active n1=active" })
	proxy.Cut(true)
	mine := f.store.Open("c").(membership.Registrar)
	if _, err := membership.Register(f.ctx, mine, membership.Registration{ID: "n1", Addr: "other:1"}); !errors.Is(err, membership.ErrDuplicate) || !strings.Contains(err.Error(), "n1:1") {
		t.Errorf("another process: %v", err)
	}
	before := f.states()
	again := f.register(server.Endpoint(), "n1")
	if st := again.Status(); st.Incarnation != 2 || f.states() != before {
		t.Errorf("restart within the lease: %+v, states %s", st, f.states())
	}
	proxy.Cut(false) // the first one wakes up: it must not push the second aside
	f.eventually("the first one knows", 10*time.Second, func() bool { return errors.Is(first.Status().Err, membership.ErrDuplicate) })
	wait(t, memberTTL) // the first lease ends
	if st := again.Status(); !st.Registered || st.Losses > 0 || f.states() != before {
		t.Errorf("after the first lease: %+v, states %s", st, f.states())
	}
	_ = first.Close()

	second := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint(), "http://"))
	f.register(second.Addr, "n2")
	f.eventually("registered", 5*time.Second, func() bool { return f.states() == "a=active n1=active n2=active" })
	second.Cut(true)
	f.eventually("out", memberTTL+500*time.Millisecond+2*time.Second, func() bool { return f.states() == "a=active n1=active n2="+topology.StateLeft.String() })
}
