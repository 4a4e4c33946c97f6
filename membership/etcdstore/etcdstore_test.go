package etcdstore_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership/etcdstore"
	"github.com/shardd/shardd/membership/storetest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformanceEmbedded runs the suite on the embedded member: one process in
// memory, the other through its socket.
func TestConformanceEmbedded(t *testing.T) {
	t.Parallel()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	conformance(t, server.Client(), server.Endpoint())
}

// TestConformanceDebian runs it on Debian's etcd-server, which is some releases
// older.
func TestConformanceDebian(t *testing.T) {
	t.Parallel()
	p := etcdtest.Start(t)
	conformance(t, dial(t, p.Endpoint), p.Endpoint)
}

func dial(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	c, err := etcdstore.Dial(etcdstore.Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// conformance gives each test a prefix of its own. The second process has its own
// client to endpoint, whose connections can be cut.
func conformance(t *testing.T, first *clientv3.Client, endpoint string) {
	var prefixes atomic.Int64
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(endpoint, "http://"))
	second := dial(t, proxy.Addr)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		prefix := "/t" + strconv.FormatInt(prefixes.Add(1), 10)
		open := func(c *clientv3.Client) *etcdstore.Store {
			s, err := etcdstore.New(c, etcdstore.Options{Prefix: prefix, TTL: 2 * time.Second, Poll: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		a, b := open(first), open(second)
		r := &raw{c: first, prefix: prefix}
		return storetest.Harness{Directory: a, Elector: a, Other: b, OtherElector: b,
			Depose: r.depose, Compact: r.compact, WriteHead: r.writeHead, WriteDeclared: r.writeDeclared, ReadHead: r.readHead, DamageContents: r.damage,
			Backup: r.backup, EndLease: r.endLease, DeleteLive: func(t *testing.T, cluster, node string) { r.writeLive(t, cluster, node, nil) }, WriteLive: r.writeLive,
			Disturb: func(t *testing.T) func() { return disturb(t, proxy) }}
	})
}

// disturb cuts all connections of a proxy every 50 ms, for 10 ms.
func disturb(t *testing.T, proxy *etcdtest.Proxy) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			pause := 50 * time.Millisecond
			if proxy.Cut(n%2 == 1); n%2 == 1 {
				pause = 10 * time.Millisecond
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
		proxy.Cut(false)
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// raw writes what no store would.
type raw struct {
	c      *clientv3.Client
	prefix string
}

func (r *raw) keys(t *testing.T, cluster string) etcdkv.Keys {
	t.Helper()
	k, err := etcdkv.NewKeys(r.prefix, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (r *raw) depose(t *testing.T, cluster string) { r.write(t, r.keys(t, cluster).Leader(), nil) }

func (r *raw) writeHead(t *testing.T, cluster string, v []byte) {
	r.write(t, r.keys(t, cluster).Head(), v)
}

func (r *raw) writeDeclared(t *testing.T, cluster string, v []byte) {
	r.write(t, r.keys(t, cluster).Declared(), v)
}

func (r *raw) damage(t *testing.T, cluster string, d topology.Digest) {
	v := r.read(t, r.keys(t, cluster).Part(d, 0))
	v[len(v)-1] ^= 1
	r.write(t, r.keys(t, cluster).Part(d, 0), v)
}

func (r *raw) readHead(t *testing.T, cluster string) []byte {
	return r.read(t, r.keys(t, cluster).Head())
}

func (r *raw) read(t *testing.T, key string) []byte {
	t.Helper()
	resp, err := r.c.Get(t.Context(), key)
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("read %s: %v", key, err)
	}
	return resp.Kvs[0].Value
}

func (r *raw) write(t *testing.T, key string, v []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var err error
	if v == nil {
		_, err = r.c.Delete(ctx, key)
	} else {
		_, err = r.c.Put(ctx, key, string(v))
	}
	if err != nil {
		t.Fatalf("write %s: %v", key, err)
	}
}

// backup restores all keys but the election's, in one transaction.
func (r *raw) backup(t *testing.T, cluster string) func(t *testing.T) {
	k := r.keys(t, cluster)
	resp, err := r.c.Get(t.Context(), k.All(), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		now, err := r.c.Get(t.Context(), k.All(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		saved := map[string]string{}
		var ops []clientv3.Op
		for _, kv := range resp.Kvs {
			saved[string(kv.Key)] = string(kv.Value)
			if string(kv.Key) != k.Leader() {
				ops = append(ops, clientv3.OpPut(string(kv.Key), string(kv.Value)))
			}
		}
		for _, kv := range now.Kvs {
			if _, ok := saved[string(kv.Key)]; !ok && string(kv.Key) != k.Leader() {
				ops = append(ops, clientv3.OpDelete(string(kv.Key)))
			}
		}
		if _, err := r.c.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *raw) compact(t *testing.T) {
	t.Helper()
	resp, err := r.c.Get(t.Context(), "x")
	if err == nil {
		_, err = r.c.Compact(t.Context(), resp.Header.Revision)
	}
	if err != nil {
		t.Fatalf("compact: %v", err)
	}
}
