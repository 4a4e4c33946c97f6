package grpclb_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/c3"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/balance/wrr"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/grpclb"
	"github.com/shardd/shardd/sdk/loadfeed"
)

func reported(s *balance.Set) (balance.Picker, error) {
	return wrr.NewReported(s, wrr.ReportedConfig{Blackout: -1, Update: 50 * time.Millisecond}, 0), nil
}

// TestPolicies runs the policies that go by what servers report against real servers, of
// which one is slow and says that it is full: by probes (Prequal), by the queue and the
// service time in trailers (C3), by ORCA's utilization in trailers and out of band.
func TestPolicies(t *testing.T) {
	f := func(name string, policy func(*balance.Set) (balance.Picker, error), cfg grpclb.Config, silent bool) {
		t.Run(name, func(t *testing.T) {
			shares := run(t, policy, cfg, silent)
			t.Logf("%s: %.3f", name, shares)
			if shares[0] > .17 { // an equal share is .25
				t.Errorf("the slow server got %.1f %%", 100*shares[0])
			}
			for i, s := range shares[1:] {
				if s < .02 { // Prequal does not even them out
					t.Errorf("g%d got %.1f %%", i+1, 100*s)
				}
			}
		})
	}
	f("prequal", func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) }, grpclb.Config{}, true)
	f("c3", func(s *balance.Set) (balance.Picker, error) { return c3.New(s, c3.Config{}) }, grpclb.Config{}, false)
	f("wrr", reported, grpclb.Config{}, false)
	f("wrr-out-of-band", reported, grpclb.Config{OutOfBand: 10 * time.Millisecond}, true)
}

// run sends 120 and then 240 calls from 8 at a time and returns each server's share of
// the latter. g0 takes 100 ms a call, the others 5 ms.
func run(t *testing.T, policy func(*balance.Set) (balance.Picker, error), cfg grpclb.Config, silent bool) []float64 {
	var all []*backend
	for i := range 4 {
		b := newBackend(i)
		d, util := 5*time.Millisecond, .2
		if i == 0 {
			d, util = 100*time.Millisecond, .9
		}
		b.work = func(context.Context) error { time.Sleep(d); return nil }
		if b.silent = silent; silent {
			counted := b.work
			b.work = func(ctx context.Context) error { // known to probes and streams, not in trailers
				defer b.load.Begin(1).Done(false)
				return counted(ctx)
			}
		}
		b.load.SetUtilization(util)
		b.listen(t, "127.0.0.1:0")
		t.Cleanup(func() { b.server.Stop() })
		all = append(all, b)
	}
	clock := loadfeed.Clock()
	feed := loadfeed.New(clock, policy)
	c := plane(t, all).Client(sdk.WithClock(clock), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
	cfg.Feed = feed
	conn := connect(t, c, cfg)
	send := func(n int) {
		var users sync.WaitGroup
		for range 8 {
			users.Go(func() {
				for range n / 8 {
					if _, err := where(t, conn, ""); err != nil {
						t.Error(err)
					}
				}
			})
		}
		users.Wait()
	}
	send(120)
	before := make([]int64, len(all))
	for i, b := range all {
		before[i] = b.served.Load()
	}
	send(240)
	var shares []float64
	for i, b := range all {
		shares = append(shares, float64(b.served.Load()-before[i])/240)
	}
	return shares
}

// TestReportedLoad: with the loads from trailers a client goes round a server that
// others have filled, which its own calls in flight do not show.
func TestReportedLoad(t *testing.T) {
	f := func(name string, view sdk.LoadView, feed bool) {
		t.Run(name, func(t *testing.T) {
			all := backends(t, 3, nil)
			p := plane(t, all)
			defer all[0].load.Begin(1000).Done(false) // from other clients
			for _, b := range all[1:] {
				defer b.load.Begin(300).Done(false)
			}
			c := p.Client(sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25, View: view, Fade: -1}))
			cfg := grpclb.Config{}
			if feed {
				cfg.Feed = loadfeed.New(loadfeed.Clock(), nil)
			}
			conn := connect(t, c, cfg)
			home := int64(0)
			for i := range 200 {
				call(t, conn, fmt.Sprint(i))
				if p.Owner(fmt.Sprint(i)) == "g0" {
					home++
				}
			}
			n := all[0].served.Load()
			t.Logf("%d of %d calls went to the full server", n, home)
			if view == sdk.OwnLoad && n != home {
				t.Errorf("own load: %d of %d went home", n, home)
			}
			if view == sdk.ReportedLoad && n > home/4 {
				t.Errorf("reported load: %d of %d went to the full server", n, home)
			}
		})
	}
	f("own", sdk.OwnLoad, false)
	f("reported", sdk.ReportedLoad, false)
	f("reported to a feed", sdk.ReportedLoad, true)
}

// TestOutOfBandLasts: reports come over the connection that took the place of the one on
// which they began, and over the one of a server that came back.
func TestOutOfBandLasts(t *testing.T) { synctest.Test(t, testOutOfBandLasts) }

func testOutOfBandLasts(t *testing.T) {
	all, dial := inMemory(t, 2)
	b := all[0]
	all[1].load.SetUtilization(1)
	clock := loadfeed.Clock()
	var policy *wrr.Reported
	feed := loadfeed.New(clock, func(s *balance.Set) (balance.Picker, error) {
		policy = wrr.NewReported(s, wrr.ReportedConfig{Blackout: -1, Expiration: 5 * time.Second}, 0)
		return policy, nil
	})
	c := plane(t, all).Client(sdk.WithClock(clock), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
	connect(t, c, grpclb.Config{Dial: dial, Feed: feed, OutOfBand: time.Second, MaxAge: time.Minute})
	want := func(what string, minutes int, utilization, weight float64) {
		t.Helper()
		b.load.SetUtilization(utilization)
		for range 60 * minutes {
			for _, b := range all {
				b.load.Begin(1).Done(false)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if w := policy.Weights(clock()); w[0] < .9*weight*w[1] || w[0] > 1.1*weight*w[1] {
			t.Errorf("%s: weights %v, want %v times the other's", what, w, weight)
		}
	}
	want("at first", 1, .5, 2)
	want("after some connections", 5, .25, 4)
	if b.opened.Load() < 5 {
		t.Fatalf("%d connections in six minutes", b.opened.Load())
	}
	b.cutOne()
	want("after a connection was lost", 1, .1, 10)
}
