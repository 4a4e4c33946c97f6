package wrr

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/balance"
)

// newSet returns nodes a, b, c ... with the weights.
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

func readJSON(tb testing.TB, name string, v any) {
	tb.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		tb.Fatal(err)
	}
}

// picks returns n picks as letters.
func picks(tb testing.TB, p balance.Picker, n int) string {
	tb.Helper()
	var b strings.Builder
	for range n {
		t, err := p.Pick(0, 0, nil)
		if err != nil {
			tb.Fatal(err)
		}
		b.WriteString(t.Node().ID())
		t.Done(0, balance.Outcome{Result: balance.Success})
	}
	return b.String()
}

type nginxRecording struct {
	Sequences map[string]struct {
		Weights []float64
		Down    []string
		Algo    string
		Picks   string
	}
	Failures map[string]struct {
		Weights []float64
		Options string
		Picks   string
		Events  []struct {
			T       float64
			Failing *string `json:"backend_failing"`
			Status  int
		}
	}
}

func TestSmoothNginxSequences(t *testing.T) {
	var rec nginxRecording
	readJSON(t, "nginx_swrr.json", &rec)
	for name, seq := range rec.Sequences {
		t.Run(name, func(t *testing.T) {
			set := newSet(t, seq.Weights...)
			var members []balance.Member
			for i := range set.Len() {
				m := set.Member(i)
				m.Down = len(seq.Down) > 0 && seq.Down[0] == m.Node.ID()
				members = append(members, m)
			}
			set, err := balance.NewSet(members)
			if err != nil {
				t.Fatal(err)
			}
			var p balance.Picker
			if seq.Algo == "round_robin" || seq.Algo == "" {
				p, err = NewSmooth(set, SmoothConfig{})
			} else {
				p = NewLeastConn(set)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := picks(t, p, len(seq.Picks)); got != seq.Picks {
				t.Errorf("picks:\n got %s\nwant %s", got, seq.Picks)
			}
		})
	}
}

// TestSmoothNginxFailures replays runs in which node a closes the connection
// without an answer for a while: "a!" is a pick that failed.
func TestSmoothNginxFailures(t *testing.T) {
	maxFails := map[string]int{"mf1_recovery": 1, "mf3": 3}
	var rec nginxRecording
	readJSON(t, "nginx_swrr.json", &rec)
	for name, run := range rec.Failures {
		t.Run(name, func(t *testing.T) {
			p, err := NewSmooth(newSet(t, run.Weights...), SmoothConfig{MaxFails: maxFails[name], FailTimeout: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range run.Events {
				now := time.Duration(e.T) * time.Second // nginx counts whole seconds
				tk, err := p.Pick(now, 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				pick, o := tk.Node().ID(), balance.Outcome{Result: balance.Success}
				if e.Failing != nil && *e.Failing == pick {
					pick, o.Result = pick+"!", balance.Failure
				}
				tk.Done(now, o)
				got = append(got, pick)
			}
			if d := cmp.Diff(strings.Fields(run.Picks), got); d != "" {
				t.Errorf("picks (-nginx +got):\n%s", d)
			}
		})
	}
}

func TestEDFRecorded(t *testing.T) {
	var rec struct {
		Sequences []struct {
			Weights []float64
			Picks   string
		}
	}
	readJSON(t, "grpc_edf.json", &rec)
	for _, seq := range rec.Sequences {
		if got := picks(t, NewEDF(newSet(t, seq.Weights...)), len(seq.Picks)); got != seq.Picks {
			t.Errorf("weights %v:\n got %s\nwant %s", seq.Weights, got, seq.Picks)
		}
	}
}

func TestStrideRecorded(t *testing.T) {
	var rec struct {
		Cases []struct {
			Weights []float64 `json:"scaled_weights"`
			First   uint32    `json:"first_sequence_number"`
			Picks   []int
			Used    uint32 `json:"sequence_numbers_used"`
		}
	}
	readJSON(t, "grpc_static_stride.json", &rec)
	for _, c := range rec.Cases {
		p := NewStride(newSet(t, c.Weights...), c.First)
		var got []int
		for range c.Picks {
			tk, err := p.Pick(0, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, tk.Index())
		}
		if d := cmp.Diff(c.Picks, got); d != "" {
			t.Errorf("weights %v from %d (-grpc +got):\n%s", c.Weights, c.First, d)
		}
		if used := p.turn.n.Load() - c.First; used != c.Used {
			t.Errorf("weights %v from %d: %d turns, grpc-go takes %d", c.Weights, c.First, used, c.Used)
		}
	}
}
