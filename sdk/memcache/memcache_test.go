package memcache_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/realserver"
	"github.com/shardd/shardd/sdk"
	shardmemcache "github.com/shardd/shardd/sdk/memcache"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is real servers and a plane whose nodes they are: m0, m1, ...
type fleet struct {
	servers []*realserver.Server
	plane   *shardtest.Plane
}

// start starts n servers, the first use of which are in the topology.
func start(t *testing.T, n, use int) fleet {
	t.Helper()
	f := fleet{servers: realserver.ForTest(t, realserver.Memcached(), n)}
	var nodes []topology.Node
	for i := range use {
		nodes = append(nodes, f.node(i))
	}
	f.plane = shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: nodes})
	return f
}

func (f fleet) node(i int) topology.Node {
	return topology.Node{ID: fmt.Sprintf("m%d", i), Addr: f.servers[i].Addr, Weight: 1}
}

// addrOf returns the address of the node that owns key.
func (f fleet) addrOf(t *testing.T, key string) string {
	t.Helper()
	topo := f.plane.Topology()
	return topo.Node(topo.Index(f.plane.Owner(key))).Addr
}

// stat asks a server for one of its statistics.
func stat(t *testing.T, addr, name string) int {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := fmt.Fprint(nc, "stats\r\n"); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(nc); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "STAT "+name+" "); ok {
			n, err := strconv.Atoi(v)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no statistic %s", name)
	return 0
}

// until waits for something that a server's own threads do.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 s", what)
		}
	}
}

func newClient(t *testing.T, f fleet, cfg shardmemcache.Config) *shardmemcache.Client {
	t.Helper()
	c := shardmemcache.New(f.plane.Client(), cfg)
	t.Cleanup(func() { c.Close() })
	return c
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cache is what gomemcache's client and ours both are: one is a drop-in for the
// other.
type cache interface {
	Get(string) (*memcache.Item, error)
	GetMulti([]string) (map[string]*memcache.Item, error)
	GetAndTouch(string, int32) (*memcache.Item, error)
	Set(*memcache.Item) error
	Add(*memcache.Item) error
	Replace(*memcache.Item) error
	Append(*memcache.Item) error
	Prepend(*memcache.Item) error
	CompareAndSwap(*memcache.Item) error
	Delete(string) error
	Touch(string, int32) error
	Increment(string, uint64) (uint64, error)
	Decrement(string, uint64) (uint64, error)
	Ping() error
	FlushAll() error
	DeleteAll() error
	Close() error
}

// TestDropIn: every command does with the SDK under it what it does with one
// server, and each key is on its owner's server and on no other.
func TestDropIn(t *testing.T) {
	f := start(t, 3, 3)
	for name, c := range map[string]cache{
		"selector": memcache.NewFromSelector(shardmemcache.NewSelector(f.plane.Client())),
		"client":   newClient(t, f, shardmemcache.Config{}),
	} {
		t.Run(name, func(t *testing.T) { everyCommand(t, f, c) })
	}
}

func everyCommand(t *testing.T, f fleet, c cache) {
	defer c.Close()
	must(t, c.Ping(), c.FlushAll())
	var keys []string
	for i := range 200 {
		key := fmt.Sprintf("user:%d", i)
		keys = append(keys, key)
		must(t, c.Set(&memcache.Item{Key: key, Value: []byte(key), Flags: 7}))
	}
	for _, key := range keys {
		direct := memcache.New(f.addrOf(t, key))
		it, err := direct.Get(key)
		if err != nil || string(it.Value) != key {
			t.Fatalf("%s is not on its owner: %v", key, err)
		}
		must(t, direct.Close())
	}
	all, err := c.GetMulti(append(keys, "nobody"))
	if err != nil || len(all) != len(keys) {
		t.Fatalf("%d items, %v", len(all), err)
	}
	if _, err := c.GetMulti([]string{"no such key"}); !errors.Is(err, memcache.ErrMalformedKey) {
		t.Errorf("a malformed key: %v", err)
	}

	k := "user:1"
	if err := c.Add(&memcache.Item{Key: k}); !errors.Is(err, memcache.ErrNotStored) {
		t.Errorf("add: %v", err)
	}
	must(t, c.Replace(&memcache.Item{Key: k, Value: []byte("b")}), c.Append(&memcache.Item{Key: k, Value: []byte("c")}),
		c.Prepend(&memcache.Item{Key: k, Value: []byte("a")}), c.Touch(k, 1000))
	it, err := c.GetAndTouch(k, 1000)
	if err != nil || string(it.Value) != "abc" {
		t.Fatalf("%v, %v", it, err)
	}
	if it, err = c.Get(k); err != nil {
		t.Fatal(err)
	}
	must(t, c.CompareAndSwap(it))
	if err := c.CompareAndSwap(it); !errors.Is(err, memcache.ErrCASConflict) {
		t.Errorf("cas: %v", err)
	}
	must(t, c.Set(&memcache.Item{Key: "n", Value: []byte("10")}))
	up, err1 := c.Increment("n", 5)
	down, err2 := c.Decrement("n", 7)
	if up != 15 || down != 8 || err1 != nil || err2 != nil {
		t.Errorf("%d, %d, %v, %v", up, down, err1, err2)
	}
	must(t, c.Delete(k))
	if _, err := c.Get(k); !errors.Is(err, memcache.ErrCacheMiss) {
		t.Errorf("deleted: %v", err)
	}
}

// TestPools: connections are there before the first request, are closed when the
// node has left, and its keys go elsewhere without an error meanwhile.
func TestPools(t *testing.T) {
	f := start(t, 3, 2)
	none := stat(t, f.servers[2].Addr, "curr_connections")
	c := newClient(t, f, shardmemcache.Config{WarmUp: 5})
	f.plane.Add(f.node(2))
	until(t, "warm-up of a node that joined", func() bool { return stat(t, f.servers[2].Addr, "curr_connections") == none+5 })

	var wrong atomic.Int64
	stop := make(chan struct{})
	var users sync.WaitGroup
	for g := range 4 {
		users.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := c.Set(&memcache.Item{Key: fmt.Sprint(g, "-", i%500), Value: []byte("v")}); err != nil {
					wrong.Add(1)
					t.Log(err)
				}
			}
		})
	}
	until(t, "requests to the third", func() bool { return stat(t, f.servers[2].Addr, "cmd_set") > 100 })
	f.plane.Remove("m2")
	until(t, "closing its connections", func() bool { return stat(t, f.servers[2].Addr, "curr_connections") == none })
	f.plane.Add(f.node(2))
	before := stat(t, f.servers[2].Addr, "cmd_set")
	until(t, "requests after its return", func() bool { return stat(t, f.servers[2].Addr, "cmd_set") > before+100 })
	close(stop)
	users.Wait()
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d requests failed", n)
	}
}

// TestCap: no more connections than allowed, however many requests there are, and
// who does not get one in time is told so.
func TestCap(t *testing.T) {
	f := start(t, 1, 1)
	var open, most atomic.Int64
	cfg := shardmemcache.Config{MaxConns: 3, WarmUp: 9, Timeout: time.Second, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if n := open.Add(1); n > most.Load() {
			most.Store(n)
		}
		return counted{nc, &open}, nil
	}}
	c := newClient(t, f, cfg)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range 50 {
				if err := c.Set(&memcache.Item{Key: fmt.Sprint(i), Value: []byte("v")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if most.Load() != 3 {
		t.Errorf("%d connections at most, want 3", most.Load())
	}
	must(t, c.Close())
	if open.Load() != 0 {
		t.Errorf("%d connections left", open.Load())
	}
}

// TestBusy: a node that does not answer keeps its connections busy.
func TestBusy(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring},
		Nodes: []topology.Node{{ID: "mute", Addr: ln.Addr().String(), Weight: 1}}})
	c := shardmemcache.New(plane.Client(), shardmemcache.Config{MaxConns: 1, Timeout: 200 * time.Millisecond, WarmUp: -1})
	defer c.Close()
	var busy, late atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var ne net.Error
			switch _, err := c.Get("k"); {
			case errors.Is(err, shardmemcache.ErrBusy):
				busy.Add(1)
			case errors.As(err, &ne) && ne.Timeout():
				late.Add(1)
			default:
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if busy.Load() < 4 || late.Load() < 1 {
		t.Errorf("%d busy, %d late", busy.Load(), late.Load())
	}
}

type counted struct {
	net.Conn
	open *atomic.Int64
}

func (c counted) Close() error {
	c.open.Add(-1)
	return c.Conn.Close()
}

// TestRenewal: a connection is replaced between requests, never within one.
func TestRenewal(t *testing.T) {
	f := start(t, 1, 1)
	total := stat(t, f.servers[0].Addr, "total_connections")
	f2 := func(name string, cfg shardmemcache.Config, want func(renewed uint64) bool) {
		t.Helper()
		cfg.WarmUp = -1
		c := newClient(t, f, cfg)
		for i := range 100 {
			key := fmt.Sprint(name[:6], i)
			must(t, c.Set(&memcache.Item{Key: key, Value: []byte(strings.Repeat(key, 5000))}))
			it, err := c.Get(key)
			if err != nil || len(it.Value) != 5000*len(key) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if n := c.Stats().Renewed; !want(n) {
			t.Errorf("%s: renewed %d times", name, n)
		}
		must(t, c.Close())
	}
	f2("requests", shardmemcache.Config{MaxRequests: 10}, func(n uint64) bool { return n == 19 })
	f2("age---", shardmemcache.Config{MaxAge: time.Nanosecond}, func(n uint64) bool { return n == 200 || n == 199 })
	f2("idleness", shardmemcache.Config{MaxIdle: time.Nanosecond}, func(n uint64) bool { return n >= 190 })
	f2("nothing", shardmemcache.Config{}, func(n uint64) bool { return n == 0 })
	if n := stat(t, f.servers[0].Addr, "total_connections") - total; n < 400 {
		t.Errorf("the server saw %d connections", n)
	}
}

// TestErrors: what the SDK cannot answer is told as gomemcache does.
func TestErrors(t *testing.T) {
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}})
	c := shardmemcache.New(plane.Client(), shardmemcache.Config{})
	defer c.Close()
	_, one := c.Get("k")
	_, many := c.GetMulti([]string{"k"})
	_, plain := memcache.NewFromSelector(shardmemcache.NewSelector(plane.Client())).Get("k")
	for _, err := range []error{one, many, plain} {
		if !errors.Is(err, memcache.ErrNoServers) || !errors.Is(err, sdk.ErrNoNodes) {
			t.Errorf("%v", err)
		}
	}
	plane.Add(topology.Node{ID: "a", Weight: 1})
	if _, err := c.Get("k"); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("a node without address: %v", err)
	}
	var seen []string
	plane.SetAddr("a", "10.0.0.1:1")
	plane.Add(topology.Node{ID: "b", Addr: "/run/b.sock", Weight: 1}, topology.Node{ID: "c", Addr: "x:1", Weight: 1, State: topology.StateDown})
	err := shardmemcache.NewSelector(plane.Client()).Each(func(a net.Addr) error {
		seen = append(seen, a.Network()+" "+a.String())
		return nil
	})
	if diff := cmp.Diff([]string{"tcp 10.0.0.1:1", "unix /run/b.sock"}, seen); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
