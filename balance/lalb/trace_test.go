package lalb

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/balance"
)

type event struct {
	T      int64
	Ev     string
	ID     int
	Server int
	Up     int
	Err    int
	Seed   uint64 `json:"rand_seed"`
	Rc     int
	Total  int64
	W      [][5]int64
}

type trace struct {
	Init   event
	Events []event
}

// fleet replays a trace: which servers there are, and which are down.
type fleet struct {
	t      *testing.T
	nodes  map[int]*balance.Node
	order  []int
	down   map[int]bool
	picker *Picker
	open   map[int]balance.Ticket
}

func (f *fleet) set() *balance.Set {
	f.t.Helper()
	var members []balance.Member
	for _, id := range f.order {
		if f.nodes[id] == nil {
			f.nodes[id] = balance.NewNode(strconv.Itoa(id), 0)
		}
		members = append(members, balance.Member{Node: f.nodes[id], Weight: 1, Down: f.down[id]})
	}
	set, err := balance.NewSet(members)
	if err != nil {
		f.t.Fatal(err)
	}
	return set
}

func (f *fleet) change() {
	f.t.Helper()
	next, err := f.picker.Next(f.set())
	if err != nil {
		f.t.Fatal(err)
	}
	f.picker = next.(*Picker)
}

func (f *fleet) apply(e event) {
	f.t.Helper()
	now := time.Duration(e.T) * time.Microsecond
	switch e.Ev {
	case "select":
		tk, err := f.picker.Pick(now, e.Seed, nil)
		if (err != nil) != (e.Rc != 0) {
			f.t.Fatalf("select %d: error %v, brpc returned %d", e.ID, err, e.Rc)
		}
		if got := tk.Node().ID(); got != strconv.Itoa(e.Server) {
			f.t.Fatalf("select %d at %v: server %s, brpc chose %d", e.ID, now, got, e.Server)
		}
		f.open[e.ID] = tk
	case "feedback":
		o := balance.Outcome{Result: balance.Success}
		if e.Err != 0 {
			o = balance.Outcome{Result: balance.Failure, Timeout: 500 * time.Millisecond, Attempts: 1}
		}
		f.open[e.ID].Done(now, o)
		delete(f.open, e.ID)
	case "available":
		f.down[e.Server] = e.Up == 0
		f.change()
	case "remove":
		var order []int
		for _, id := range f.order {
			if id != e.Server {
				order = append(order, id)
			}
		}
		f.order = order
		delete(f.nodes, e.Server)
		f.change()
	case "add":
		f.order = append(f.order, e.Server)
		f.change()
	default:
		f.t.Fatalf("unknown event %q", e.Ev)
	}
}

// state is the tree as brpc prints it: id, weight, base, average latency, left.
func (f *fleet) state() event {
	t := f.picker.tree
	e := event{Total: t.total.Load()}
	for i := range t.leaves {
		l := &t.leaves[i]
		id, _ := strconv.Atoi(f.picker.set.Node(int(l.member)).ID())
		e.W = append(e.W, [5]int64{int64(id), l.weight.Load(), l.server.base.Load(), l.server.avg.Load(), l.left.Load()})
	}
	return e
}

// TestBrpcTrace replays brpc's own code, event by event.
func TestBrpcTrace(t *testing.T) {
	data, err := os.ReadFile("testdata/brpc_lalb_trace.json")
	if err != nil {
		t.Fatal(err)
	}
	var tr trace
	if err := json.Unmarshal(data, &tr); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, nodes: map[int]*balance.Node{}, down: map[int]bool{}, open: map[int]balance.Ticket{}}
	for _, w := range tr.Init.W {
		f.order = append(f.order, int(w[0]))
	}
	if f.picker, err = New(f.set(), Config{}); err != nil {
		t.Fatal(err)
	}
	check := func(k int, e event) {
		t.Helper()
		if d := cmp.Diff(event{Total: e.Total, W: e.W}, f.state()); d != "" {
			t.Fatalf("event %d (%s at %d us) (-brpc +got):\n%s", k, e.Ev, e.T, d)
		}
	}
	check(-1, tr.Init)
	for k, e := range tr.Events {
		f.apply(e)
		check(k, e)
	}
	if len(tr.Events) != 740 {
		t.Errorf("%d events in the recording, want 740", len(tr.Events))
	}
}
