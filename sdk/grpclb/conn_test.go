package grpclb_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/grpclb"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// call makes one call and fails the test if it fails.
func call(t *testing.T, conn *grpc.ClientConn, key string) string {
	t.Helper()
	got, err := where(t, conn, key)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestMaxAge: a connection is replaced when it is old enough and not before, by one
// that is ready, and ends with what it carries; the streams that it carries go on.
func TestMaxAge(t *testing.T) { synctest.Test(t, testMaxAge) }

func testMaxAge(t *testing.T) {
	all, dial := inMemory(t, 2)
	b := all[0]
	conn := connect(t, plane(t, all[:1]).Client(), grpclb.Config{Dial: dial, MaxAge: 10 * time.Minute})
	_, ended := hold(t, t.Context(), conn, "k")
	begun := time.Now()
	want := func(what string, opened, open int64) {
		t.Helper()
		call(t, conn, "k")
		synctest.Wait()
		if o, n := b.opened.Load(), b.open.Load(); o != opened || n != open {
			t.Errorf("%s: %d connections made, %d open, want %d and %d", what, o, n, opened, open)
		}
	}
	time.Sleep(9*time.Minute - time.Second)
	want("before nine minutes", 1, 1)
	time.Sleep(time.Minute + 2*time.Second)
	want("after ten, with a stream on the old one", 2, 2)
	time.Sleep(10 * time.Minute)
	want("after twenty", 3, 2)
	if err := ended(); err != nil {
		t.Errorf("the stream was cut after %v: %v", time.Since(begun), err)
	}
}

// TestMaxRequests: a connection is replaced after as many calls as it may have, and no
// call fails or is made twice for it.
func TestMaxRequests(t *testing.T) {
	f := func(cfg grpclb.Config, least, most int64) {
		t.Helper()
		all := backends(t, 1, nil)
		cfg.MaxAge = -1
		conn := connect(t, plane(t, all).Client(), cfg)
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				for range 100 {
					if _, err := where(t, conn, "k"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		users.Wait()
		if n := all[0].opened.Load(); n < least || n > most {
			t.Errorf("%+v: %d connections for 400 calls, want %d to %d", cfg, n, least, most)
		}
		until(t, "old ones closed", func() bool { return all[0].open.Load() == 1 })
		if n := all[0].served.Load(); n != 400 {
			t.Errorf("%d calls served for 400", n)
		}
	}
	f(grpclb.Config{}, 1, 1)
	f(grpclb.Config{MaxRequests: 20}, 4, 23) // calls go on by the old one until the new one is ready
	f(grpclb.Config{MaxRequests: 1000}, 1, 1)
}

// TestMaxConns: while as many connections are open as there may be, none is replaced,
// whatever long streams hold of them.
func TestMaxConns(t *testing.T) { synctest.Test(t, testMaxConns) }

func testMaxConns(t *testing.T) {
	all, dial := inMemory(t, 1)
	b := all[0]
	conn := connect(t, plane(t, all).Client(), grpclb.Config{Dial: dial, MaxConns: 3, MaxAge: time.Minute})
	var cancels []context.CancelFunc
	for i := range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		cancels = append(cancels, cancel)
		hold(t, ctx, conn, "k")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.open.Load(); n > 3 || i > 2 && n != 3 {
			t.Fatalf("after %d min: %d open", i+1, n)
		}
	}
	if b.opened.Load() != 3 {
		t.Errorf("%d were opened", b.opened.Load())
	}
	for _, cancel := range cancels {
		cancel()
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	if n := b.open.Load(); n != 1 || b.opened.Load() < 4 {
		t.Errorf("in the end %d open, %d opened", n, b.opened.Load())
	}
	call(t, conn, "k")
}

// TestReplaceFails: a connection that cannot be replaced stays, and is tried again.
func TestReplaceFails(t *testing.T) { synctest.Test(t, testReplaceFails) }

func testReplaceFails(t *testing.T) {
	all, dial := inMemory(t, 1)
	b := all[0]
	conn := connect(t, plane(t, all).Client(), grpclb.Config{Dial: dial, MaxAge: time.Minute})
	call(t, conn, "k")
	b.refuse.Store(true)
	for range 60 {
		time.Sleep(10 * time.Second)
		call(t, conn, "k")
	}
	synctest.Wait()
	if o, n := b.opened.Load(), b.open.Load(); o != 1 || n != 1 {
		t.Errorf("%d made, %d open, want the first one", o, n)
	}
	b.refuse.Store(false)
	time.Sleep(30 * time.Second)
	call(t, conn, "k")
	synctest.Wait()
	if o, n := b.opened.Load(), b.open.Load(); o != 2 || n != 1 {
		t.Errorf("%d made, %d open, want a second one", o, n)
	}
}

// TestLeave: a stream at a node that left goes on for the grace period, and is then cut;
// a node that comes back or moves is another stay. Without a grace it is never cut.
func TestLeave(t *testing.T) {
	f := func(grace time.Duration, cut bool, leave func(p *shardtest.Plane, moved string)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			all, dial := inMemory(t, 3)
			p := plane(t, all[:2])
			conn := connect(t, p.Client(), grpclb.Config{Dial: dial, Grace: grace})
			key := keyOf(p.Owner, "g0")
			at, ended := hold(t, t.Context(), conn, key)
			if at != "g0" {
				t.Fatal(at)
			}
			leave(p, all[2].addr)
			synctest.Wait()
			if got := call(t, conn, key); got == "g0" {
				t.Error("a call to the node that left")
			}
			time.Sleep(4 * time.Second)
			synctest.Wait()
			if err := ended(); err != nil {
				t.Errorf("cut within the grace: %v", err)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if err := ended(); (err != nil) != cut || cut && status.Code(err) != codes.Unavailable {
				t.Errorf("an hour after: %v, want cut = %v", err, cut)
			}
			if n := all[0].open.Load(); cut && n != 0 {
				t.Errorf("%d connections to the node that left", n)
			}
			call(t, conn, key)
		})
	}
	f(5*time.Second, true, func(p *shardtest.Plane, _ string) { p.Remove("g0") })
	f(5*time.Second, true, func(p *shardtest.Plane, moved string) { p.SetAddr("g0", moved) })
	f(-1, false, func(p *shardtest.Plane, _ string) { p.Remove("g0") })
}

// TestLeaveIdle: the connections of a node that left are closed at once if they carry
// nothing, and with their last call otherwise.
func TestLeaveIdle(t *testing.T) { synctest.Test(t, testLeaveIdle) }

func testLeaveIdle(t *testing.T) {
	all, dial := inMemory(t, 2)
	p := plane(t, all)
	conn := connect(t, p.Client(), grpclb.Config{Dial: dial, Conns: 2})
	synctest.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	hold(t, ctx, conn, keyOf(p.Owner, "g0"))
	p.Remove("g0")
	synctest.Wait()
	if n := all[0].open.Load(); n != 1 {
		t.Errorf("%d open, want the one with a stream", n)
	}
	cancel()
	synctest.Wait()
	if n := all[0].open.Load(); n != 0 {
		t.Errorf("%d open after the last stream", n)
	}
}

// TestConns: as many connections are kept as are asked for, and streams go to the one
// with the fewest.
func TestConns(t *testing.T) { synctest.Test(t, testConns) }

func testConns(t *testing.T) {
	all, dial := inMemory(t, 1)
	conn := connect(t, plane(t, all).Client(), grpclb.Config{Dial: dial, Conns: 3})
	call(t, conn, "k")
	synctest.Wait()
	if n := all[0].open.Load(); n != 3 {
		t.Fatalf("%d connections", n)
	}
	var ends []func() error
	for range 6 {
		_, ended := hold(t, t.Context(), conn, "k")
		ends = append(ends, ended)
	}
	all[0].cutOne()
	synctest.Wait()
	broken := 0
	for _, ended := range ends {
		if ended() != nil {
			broken++
		}
	}
	if broken != 2 {
		t.Errorf("one of three connections carried %d of 6 streams", broken)
	}
	call(t, conn, "k")
	time.Sleep(time.Minute)
	synctest.Wait()
	if n := all[0].open.Load(); n != 3 {
		t.Errorf("%d connections in the end", n)
	}
}

// TestUnready: a node that does not get ready takes no call for which another will do,
// holds none up for longer than the warm-up, and is used as soon as it is ready.
func TestUnready(t *testing.T) { synctest.Test(t, testUnready) }

func testUnready(t *testing.T) {
	all, dial := inMemory(t, 3)
	silent := make(chan struct{})
	var ends []net.Conn
	var mu sync.Mutex
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range ends {
			c.Close()
		}
	})
	slow := func(ctx context.Context, addr string) (net.Conn, error) {
		select {
		case <-silent:
			return dial(ctx, addr)
		default:
		}
		if addr != all[0].addr {
			return dial(ctx, addr)
		}
		ours, theirs := net.Pipe() // nobody speaks at the other end
		go func() {
			b := make([]byte, 1024)
			for {
				if _, err := theirs.Read(b); err != nil {
					return
				}
			}
		}()
		mu.Lock()
		defer mu.Unlock()
		ends = append(ends, theirs)
		return ours, nil
	}
	p := plane(t, all)
	c := p.Client(sdk.WithBalance(sdk.Balance{}))
	strict := connect(t, c, grpclb.Config{Dial: slow})
	next := connect(t, c, grpclb.Config{Dial: slow, Next: true})
	key := keyOf(p.Owner, "g0")
	order, err := c.RouteN(nil, key, 2)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // the others are ready
	begun := time.Now()
	for range 50 {
		if at := call(t, strict, ""); at == "g0" {
			t.Fatal("a call to a node that is not ready")
		}
		if at := call(t, next, key); at != order[1].ID() {
			t.Fatalf("%s of %s went to %s", key, order[0].ID(), at)
		}
	}
	if d := time.Since(begun); d > 0 {
		t.Errorf("calls waited %v for a node that they did not need", d)
	}
	_, err = where(t, strict, key)
	if d := time.Since(begun); status.Code(err) != codes.Unavailable || d != time.Second {
		t.Errorf("after %v: %v, want Unavailable after 1s", d, err)
	}
	if _, err = where(t, strict, key); status.Code(err) != codes.Unavailable || time.Since(begun) != time.Second {
		t.Errorf("the next call: %v after %v", err, time.Since(begun))
	}
	for _, n := range c.LoadStats().Nodes {
		if n.InFlight != 0 {
			t.Errorf("%+v", n)
		}
	}
	close(silent)
	time.Sleep(time.Minute) // gRPC gives the handshake up and tries again
	if at := call(t, strict, key); at != "g0" {
		t.Errorf("%s went to %s", key, at)
	}
	if at := call(t, next, key); at != "g0" {
		t.Errorf("%s went to %s", key, at)
	}
}

// TestConnects: nodes are connected to before the first call.
func TestConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, dial := inMemory(t, 2)
		connect(t, plane(t, all).Client(), grpclb.Config{Dial: dial})
		synctest.Wait()
		for _, b := range all {
			if n := b.open.Load(); n != 1 {
				t.Errorf("%s: %d connections", b.id, n)
			}
		}
	})
}

// TestJoin: a node is connected to before it owns keys, so that its first call waits
// for nothing.
func TestJoin(t *testing.T) { synctest.Test(t, testJoin) }

func testJoin(t *testing.T) {
	all, dial := inMemory(t, 2)
	p := plane(t, all[:1])
	conn := connect(t, p.Client(), grpclb.Config{Dial: dial})
	call(t, conn, "k")
	n := all[1].node()
	n.State = topology.StateJoining
	p.Add(n)
	synctest.Wait()
	if n := all[1].open.Load(); n != 1 {
		t.Errorf("%d connections to the node that joins", n)
	}
	for i := range 20 {
		if at := call(t, conn, fmt.Sprint(i)); at != "g0" {
			t.Errorf("a call to %s", at)
		}
	}
}

// TestKeyFunc: the key is what the configuration says, for streams too.
func TestKeyFunc(t *testing.T) {
	all := backends(t, 3, nil)
	p := plane(t, all)
	type key struct{}
	conn := connect(t, p.Client(), grpclb.Config{Key: func(ctx context.Context, m string) string {
		v, _ := ctx.Value(key{}).(string)
		return v + m
	}})
	ctx := metadata.AppendToOutgoingContext(context.WithValue(t.Context(), key{}, "x"), "shardd-key", "not this")
	if at, _ := hold(t, ctx, conn, "nor this"); at != p.Owner("x"+stream) {
		t.Errorf("%s, want %s", at, p.Owner("x"+stream))
	}
}

// keyOf returns a key that the node owns.
func keyOf(owner func(string) string, node string) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint(i); owner(key) == node {
			return key
		}
	}
}
