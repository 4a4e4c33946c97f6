package sdk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// HAProxy 2.6.12 with hash-balance-factor: testdata/haproxy_bounded.json is which
// server it chose for each request, while others were in flight.
func TestHAProxyBoundedLoad(t *testing.T) {
	var v struct {
		Cases []struct {
			Name    string
			Factor  float64 `json:"hash_balance_factor"`
			Servers []struct {
				ID, Weight uint32
			}
			Events    [][3]any
			FinalLoad []int64 `json:"final_load"`
		}
	}
	b, err := os.ReadFile("testdata/haproxy_bounded.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	opened := 0
	for _, c := range v.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var all []topology.Node
			at := map[string]int{}
			for i, s := range c.Servers {
				id := fmt.Sprintf("n%d", 99-i) // the order of ids is not that of the declaration
				at[id] = i
				all = append(all, topology.Node{ID: id, Addr: "same:1", Weight: s.Weight, Position: uint32(i + 1)})
			}
			l := newLine(t)
			client, f := start(t)
			mustGive(t, f, l.publish(topology.Spec{Algorithm: topology.Compat, BoundedLoad: c.Factor / 100,
				Compat: topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "consistent", Hash: "crc32", Avalanche: true}}, all...))
			open := make([][]*sdk.Ticket, len(all))
			for k, e := range c.Events {
				server := int(e[2].(float64))
				if e[0] == "close" {
					open[server][0].Done(sdk.Success)
					open[server] = open[server][1:]
					continue
				}
				tk := acquire(t, client, e[1].(string), 1)
				if got := at[tk.ID()]; got != server {
					t.Fatalf("event %d: server %d, HAProxy chose %d", k, got, server)
				}
				open[server] = append(open[server], tk)
				opened++
			}
			load := make([]int64, len(all))
			for id, i := range at {
				load[i] = loadOf(t, client, id).InFlight
			}
			if diff := cmp.Diff(c.FinalLoad, load); diff != "" {
				t.Fatal(diff)
			}
		})
	}
	if opened < 80 {
		t.Fatalf("only %d requests compared", opened)
	}
}
