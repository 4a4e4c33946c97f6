package latency

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
)

func newSet(tb testing.TB, weights ...float64) *balance.Set {
	tb.Helper()
	members := make([]balance.Member, len(weights))
	for i, w := range weights {
		members[i] = balance.Member{Node: balance.NewNode(string(rune('a'+i)), 0), Weight: w}
	}
	set, err := balance.NewSet(members)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// TestPeakEWMATower replays tower's load::PeakEwma under a paused clock: costs
// must agree to 1e-9. A drain ends the requests that the recording shows ended.
func TestPeakEWMATower(t *testing.T) {
	var rec struct {
		Cases []struct {
			Name    string
			Default int64 `json:"default_rtt_ms"`
			Decay   int64 `json:"decay_ms"`
			Steps   []struct {
				Op      string
				Micros  int64 `json:"t_us"`
				Pending int
				Cost    float64 `json:"cost_ns"`
			}
		}
	}
	data, err := os.ReadFile("testdata/tower_peak_ewma.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		t.Fatal(err)
	}
	for _, c := range rec.Cases {
		t.Run(c.Name, func(t *testing.T) {
			peak, err := NewPeakEWMA(PeakConfig{
				Default: time.Duration(c.Default) * time.Millisecond,
				Decay:   time.Duration(c.Decay) * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			set := newSet(t, 1)
			cost := peak.Bind(set, nil)
			set = set.Observed(cost)
			var open []balance.Ticket
			for k, s := range c.Steps {
				now := time.Duration(s.Micros) * time.Microsecond
				switch s.Op {
				case "start":
					open = append(open, set.Take(0, now))
				case "drain":
					for len(open) > s.Pending {
						open[0].Done(now, balance.Outcome{Result: balance.Success})
						open = open[1:]
					}
				case "load":
					if got := cost.Cost(0, now); math.Abs(got-s.Cost) > 1e-9*s.Cost {
						t.Errorf("step %d at %v, %d pending: cost %v, tower has %v", k, now, s.Pending, got, s.Cost)
					}
				}
			}
		})
	}
}

func TestPeakEWMAColdStart(t *testing.T) {
	peak, err := NewPeakEWMA(PeakConfig{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := balance.NewP2C(newSet(t, 1, 1), peak)
	if err != nil {
		t.Fatal(err)
	}
	// a answers in 1 ms; b hangs on its first request. Finagle's rule: one probe,
	// not a flood.
	hung := 0
	for k := range 1000 {
		now := time.Duration(k) * time.Millisecond
		tk, err := p.Pick(now, uint64(k), nil)
		if err != nil {
			t.Fatal(err)
		}
		if tk.Node().ID() == "b" {
			hung++
			continue
		}
		tk.Done(now+time.Millisecond, balance.Outcome{Result: balance.Success})
	}
	if hung != 1 {
		t.Errorf("%d requests went to a node that never answered, want 1", hung)
	}
}
