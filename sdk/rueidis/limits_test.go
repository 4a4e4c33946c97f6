package rueidis_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	shardrueidis "github.com/shardd/shardd/sdk/rueidis"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// fleet is a server and a plane that has it.
type fleet struct {
	plane *shardtest.Plane
	nodes []topology.Node
	watch rueidis.Client // a client of the server alone
}

func observed(t *testing.T, n, use int) fleet {
	t.Helper()
	plane, nodes, c := start(t, n, use)
	c.Close()
	watch, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{nodes[n-1].Addr}, ForceSingleClient: true, PipelineMultiplex: -1, ClientName: "watch"})
	must(t, err)
	t.Cleanup(watch.Close)
	return fleet{plane, nodes, watch}
}

// conns counts the server's connections of clients of the name.
func (f fleet) conns(t *testing.T, name string) int {
	t.Helper()
	list, err := f.watch.Do(context.Background(), f.watch.B().ClientList().Build()).ToString()
	must(t, err)
	return strings.Count(list, " name="+name+" ")
}

// TestWarmUp: all connections for commands are open before the first.
func TestWarmUp(t *testing.T) {
	f := observed(t, 1, 1)
	for _, multiplex := range []int{-1, 1, 3} {
		name := fmt.Sprint("m", multiplex)
		c := newClient(t, f.plane, shardrueidis.Config{Option: rueidis.ClientOption{PipelineMultiplex: multiplex, ClientName: name}})
		must(t, c.Node("k", func(rueidis.Client) error { return nil }))
		if n := f.conns(t, name); n != 1<<max(0, multiplex) {
			t.Errorf("multiplex %d: %d connections", multiplex, n)
		}
	}
}

// TestCap: however many commands, blocking commands and dedicated connections there are.
func TestCap(t *testing.T) {
	f := observed(t, 1, 1)
	for _, most := range []int{1, 5, 8} {
		name := fmt.Sprint("cap", most)
		c := newClient(t, f.plane, shardrueidis.Config{MaxConns: most, Option: rueidis.ClientOption{PipelineMultiplex: 2, ClientName: name}})
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				err := c.Node("k", func(n rueidis.Client) error {
					switch i % 3 {
					case 0:
						return n.Do(t.Context(), n.B().Set().Key("k").Value("v").Build()).Error()
					case 1:
						return n.Dedicated(func(d rueidis.DedicatedClient) error { return d.Do(t.Context(), d.B().Ping().Build()).Error() })
					}
					s := n.DoStream(t.Context(), n.B().Get().Key("k").Build())
					for s.HasNext() {
						if _, err := s.WriteTo(new(strings.Builder)); err != nil && !rueidis.IsRedisNil(err) {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := f.conns(t, name); n > max(3, most) || most > 1 && n < 4 {
			t.Errorf("%d connections, of %d at most", n, most)
		}
	}
}

// TestRenewal: connections are replaced by age and by requests, and under many users
// nothing is lost or done twice.
func TestRenewal(t *testing.T) {
	f := observed(t, 1, 1)
	run := func(name string, cfg shardrueidis.Config, renewed func(uint64) bool) {
		t.Helper()
		cfg.Option = rueidis.ClientOption{ClientName: name, PipelineMultiplex: 1}
		c := newClient(t, f.plane, cfg)
		b := builder(t, c)
		incr := func(times int) {
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range times {
						if err := c.Do(context.Background(), b.Incr().Key(name).Build()).Error(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
		}
		total := 0
		until(t, name, func() bool { // connecting anew goes on in the background
			incr(100)
			total += 800
			return renewed(c.Stats().Renewed)
		})
		if sum, err := f.watch.Do(t.Context(), f.watch.B().Get().Key(name).Build()).AsInt64(); sum != int64(total) || err != nil {
			t.Errorf("%s: %d increments of %d, %v", name, sum, total, err)
		}
		until(t, "the end of old connections", func() bool { return f.conns(t, name) <= 2 })
		c.Close()
		until(t, "the end of all", func() bool { return f.conns(t, name) == 0 })
	}
	run("requests", shardrueidis.Config{MaxRequests: 50}, func(n uint64) bool { return n >= 5 })
	run("age", shardrueidis.Config{MaxAge: 5 * time.Millisecond}, func(n uint64) bool { return n >= 5 })
	run("nothing", shardrueidis.Config{}, func(n uint64) bool { return n == 0 })
}

// TestRenewalFails: where no new connection can be had, the old ones go on.
func TestRenewalFails(t *testing.T) {
	f := observed(t, 1, 1)
	var once sync.Mutex
	left := 2
	c := newClient(t, f.plane, shardrueidis.Config{MaxRequests: 10, Option: rueidis.ClientOption{PipelineMultiplex: -1, DisableRetry: true,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			once.Lock()
			defer once.Unlock()
			if left--; left < 1 {
				return nil, context.DeadlineExceeded
			}
			return d.DialContext(ctx, "tcp", addr)
		}}})
	b := builder(t, c)
	for range 200 {
		must(t, c.Do(t.Context(), b.Set().Key("k").Value("v").Build()).Error())
	}
	if c.Stats().Renewed != 0 {
		t.Errorf("%+v", c.Stats())
	}
}

// TestLeaves: connections of a node that left are closed after what is in flight.
func TestLeaves(t *testing.T) {
	f := observed(t, 2, 2)
	c := newClient(t, f.plane, shardrueidis.Config{MaxRequests: 30, Option: rueidis.ClientOption{ClientName: "leaves"}})
	key := "k"
	for i := 0; f.plane.Owner(key) != "r1"; i++ {
		key = fmt.Sprint("k", i)
	}
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- c.Node(key, func(n rueidis.Client) error {
			close(entered)
			<-leave
			return n.Do(context.Background(), n.B().Set().Key(key).Value("v").Build()).Error()
		})
	}()
	<-entered
	for range 100 {
		must(t, c.Node(key, func(n rueidis.Client) error { return n.Do(t.Context(), n.B().Get().Key(key).Build()).NonRedisError() }))
	}
	f.plane.Remove("r1")
	if f.conns(t, "leaves") == 0 {
		t.Error("closed under a request")
	}
	close(leave)
	must(t, <-done)
	until(t, "closing", func() bool { return f.conns(t, "leaves") == 0 })
}

// TestLongCommand: a command that is under way when its connections are replaced is
// carried out once.
func TestLongCommand(t *testing.T) {
	f := observed(t, 1, 1)
	c := newClient(t, f.plane, shardrueidis.Config{MaxAge: time.Millisecond})
	b := builder(t, c)
	const script = `local n, t = redis.call('INCR', KEYS[1]), redis.call('TIME')
local function past() local u = redis.call('TIME'); return (u[1] - t[1]) * 1000000 + u[2] - t[2] end
while n == 1 and past() < 1300000 do end
return n`
	var all sync.WaitGroup
	for range 4 { // each has the connections replaced
		all.Go(func() {
			if err := c.Do(t.Context(), b.Eval().Script(script).Numkeys(1).Key("once").Build()).Error(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n, err := f.watch.Do(t.Context(), f.watch.B().Get().Key("once").Build()).AsInt64(); n != 4 || err != nil {
		t.Errorf("carried out %d times of 4, %v", n, err)
	}
	until(t, "a replacement", func() bool { return c.Stats().Renewed > 0 })
}
