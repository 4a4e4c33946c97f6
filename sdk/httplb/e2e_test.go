package httplb_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/c3"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/balance/wrr"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httplb"
	"github.com/shardd/shardd/sdk/loadfeed"
)

// TestPolicies runs the policies that go by servers' reports against real servers, one
// of which is slow and two of which get half of all requests from elsewhere.
func TestPolicies(t *testing.T) {
	for name, policy := range map[string]func(*balance.Set) (balance.Picker, error){
		"prequal": func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) },
		"c3":      func(s *balance.Set) (balance.Picker, error) { return c3.New(s, c3.Config{}) },
		"wrr": func(s *balance.Set) (balance.Picker, error) {
			return wrr.NewReported(s, wrr.ReportedConfig{Blackout: -1, Update: 100 * time.Millisecond}, 0), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			shares := run(t, policy)
			t.Logf("%s: %.2f", name, shares)
			if shares[0] > .17 { // an equal share is .25
				t.Errorf("the slow server got %.0f %%", 100*shares[0])
			}
			for i, s := range shares[1:] {
				if s < .02 { // Prequal does not even them out
					t.Errorf("b%d got %.0f %%", i+1, 100*s)
				}
			}
		})
	}
}

// run sends 120 and then 240 requests from 8 at a time and returns each server's share
// of the latter. b0 takes 100 ms a request, the others 5 ms.
func run(t *testing.T, policy func(*balance.Set) (balance.Picker, error)) []float64 {
	var all []*backend
	for i := range 4 {
		d, util := 5*time.Millisecond, .2
		if i == 0 {
			d, util = 100*time.Millisecond, .9
		}
		b := newBackend(t, fmt.Sprintf("b%d", i), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(d) }))
		b.load.SetUtilization(util)
		all = append(all, b)
	}
	clock := loadfeed.Clock()
	feed := loadfeed.New(clock, policy)
	c := plane(t, all).Client(sdk.WithClock(clock), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
	h := transport(t, c, httplb.Config{Feed: feed})
	send := func(n int) {
		var users sync.WaitGroup
		for range 8 {
			users.Go(func() {
				for range n / 8 {
					if _, err := post(t, h, "", "x"); err != nil {
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

// TestReportedLoad: with loads from replies a client goes round a server that others
// have filled, which its own requests in flight do not show.
func TestReportedLoad(t *testing.T) {
	for name, view := range map[string]sdk.LoadView{"own": sdk.OwnLoad, "reported": sdk.ReportedLoad} {
		t.Run(name, func(t *testing.T) {
			all := backends(t, 3)
			p := plane(t, all)
			full := all[0].load.Begin(1000) // from other clients
			defer full.Done(false)
			for _, b := range all[1:] {
				defer b.load.Begin(300).Done(false)
			}
			c := p.Client(sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25, View: view, Fade: -1}))
			h := transport(t, c, httplb.Config{Key: httplb.KeyHeader("X-Key")})
			for i := range 200 {
				if _, err := post(t, h, fmt.Sprint(i), "x"); err != nil {
					t.Fatal(err)
				}
			}
			n, home := all[0].served.Load(), int64(0)
			for i := range 200 {
				if p.Owner(fmt.Sprint(i)) == "b0" {
					home++
				}
			}
			if view == sdk.OwnLoad && n < home {
				t.Errorf("own load: %d of %d went home", n, home)
			}
			if view == sdk.ReportedLoad && n > home/4 {
				t.Errorf("reported load: %d of %d went to the full server", n, home)
			}
		})
	}
}
