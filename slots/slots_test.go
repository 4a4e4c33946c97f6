package slots_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/slots"
)

const none = slots.NoOwner

// names returns n ids in ascending order, with weights of 1.
func names(n int) ([]string, []uint32) {
	ids, weights := make([]string, n), make([]uint32, n)
	for i := range ids {
		ids[i], weights[i] = fmt.Sprintf("node-%05d", i), 1
	}
	return ids, weights
}

// cycle returns n zones 0, 1, ..., of z in all, or nil for z = 0.
func cycle(n, z int) []uint16 {
	if z == 0 {
		return nil
	}
	zones := make([]uint16, n)
	for i := range zones {
		zones[i] = uint16(i % z)
	}
	return zones
}

func mustBuild(t rapid.TB, ids []string, weights []uint32, zones []uint16, count, replicas int) slots.Rows {
	t.Helper()
	rows, err := slots.Build(ids, weights, zones, count, replicas)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return rows
}

func mustUpdate(t rapid.TB, prev slots.Rows, ids []string, weights []uint32, zones []uint16, count, replicas int) (slots.Rows, slots.Report) {
	t.Helper()
	rows, report, err := slots.Update(prev, ids, weights, zones, count, replicas)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return rows, report
}

func mustNew(t rapid.TB, n int, rows slots.Rows) *slots.Table {
	t.Helper()
	table, err := slots.New(n, rows)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return table
}

// tally counts the entries of each of n nodes in rows.
func tally(n int, rows ...[]uint16) []int {
	c := make([]int, n)
	for _, row := range rows {
		for _, o := range row {
			if o != none {
				c[o]++
			}
		}
	}
	return c
}

// The published balance at equal weights is a matter of arithmetic: every node
// has its exact share rounded down or up.
func TestBalance(t *testing.T) {
	for _, tt := range []struct {
		n        int
		peak, cv float64 // of the exact shares, as published
	}{{10, 1.0004, .0003}, {100, 1.0010, .0022}, {1000, 1.0376, .0297}} {
		ids, weights := names(tt.n)
		rows := mustBuild(t, ids, weights, nil, slots.DefaultCount, 1)
		peak, cv := spread(tally(tt.n, rows[0]))
		if peak > tt.peak*1.01 || math.Abs(cv-tt.cv) > .001 {
			t.Errorf("N=%d: peak %.4f cv %.4f, want %.4f and %.4f", tt.n, peak, cv, tt.peak, tt.cv)
		}
		// With replicas, all copies and the primaries alike.
		rows = mustBuild(t, ids, weights, cycle(tt.n, 5), slots.DefaultCount, 3)
		if peak, cv := spread(tally(tt.n, rows...)); peak > tt.peak || cv > tt.cv+.001 {
			t.Errorf("N=%d, 3 copies: peak %.4f cv %.4f", tt.n, peak, cv)
		}
		if peak, cv := spread(tally(tt.n, rows[0])); peak > tt.peak*1.01 || cv > tt.cv+.001 {
			t.Errorf("N=%d, primaries of 3: peak %.4f cv %.4f", tt.n, peak, cv)
		}
	}
}

func spread(c []int) (peak, cv float64) {
	var sum, squares, most float64
	for _, v := range c {
		sum += float64(v)
		squares += float64(v) * float64(v)
		most = max(most, float64(v))
	}
	mean := sum / float64(len(c))
	return most / mean, math.Sqrt(max(0, squares/float64(len(c))-mean*mean)) / mean
}

// When a node leaves, its load goes to many others: the slots of a node have
// nearly all nodes of other zones as partners.
func TestPartnersAreMixed(t *testing.T) {
	const n = 100
	ids, weights := names(n)
	zones := cycle(n, 4)
	rows := mustBuild(t, ids, weights, zones, slots.DefaultCount, 3)
	partners := map[[2]uint16]int{}
	for s := range rows.Count() {
		for _, row := range rows[1:] {
			partners[[2]uint16{rows[0][s], row[s]}]++
		}
	}
	most := 0
	for _, c := range partners {
		most = max(most, c)
	}
	// 328 copies behind each primary, 75 possible partners: 4.4 each.
	if len(partners) < n*73 || most > 20 {
		t.Errorf("%d pairs of primary and copy, the most frequent %d times; want nearly %d, about 4 times", len(partners), most, n*75)
	}
}

func TestRefused(t *testing.T) {
	ids, weights := names(3)
	good := mustBuild(t, ids, weights, nil, 16, 2)
	many, ones := names(17)
	tests := []struct {
		name     string
		prev     slots.Rows
		ids      []string
		weights  []uint32
		zones    []uint16
		count    int
		replicas int
		want     string
	}{
		{"0 slots", nil, ids, weights, nil, 0, 1, "0; want 1 to 65536, usually 16384"},
		{"-1 slots", nil, ids, weights, nil, -1, 1, "-1; want 1 to 65536"},
		{"too many slots", nil, ids, weights, nil, 65537, 1, "65537; want 1 to 65536"},
		{"0 replicas", nil, ids, weights, nil, 16, 0, "0 replicas; want 1 to 16"},
		{"17 replicas", nil, ids, weights, nil, 16, 17, "17 replicas; want 1 to 16"},
		{"more nodes than slots", nil, many, ones, nil, 16, 1, "17 nodes with weight but 16 slots; take at least 17 slots"},
		{"more nodes than slots, replicas", nil, many, ones, nil, 16, 3, "take at least 17 slots"},
		{"a node starves", nil, ids, []uint32{1, 1000, 1}, nil, 100, 1, `node "node-00002" of weight 1 would hold none of 100 slots`},
		{"order", nil, []string{"b", "a"}, []uint32{1, 1}, nil, 16, 1, "strictly ascending"},
		{"lengths", nil, ids, []uint32{1}, nil, 16, 1, "3 ids but 1 weights"},
		{"zones", nil, ids, weights, []uint16{1}, 16, 1, "3 ids but 1 zones"},
		{"unknown node", slots.Rows{{0, 3}}, ids, weights, nil, 2, 1, "entry 1 names node 3"},
		{"a node twice", slots.Rows{{0, 1}, {1, 1}}, ids, weights, nil, 2, 1, "slot 1 names node 1 twice"},
		{"uneven rows", slots.Rows{{0, 1}, {1}}, ids, weights, nil, 2, 1, "rows of 2 and 1 slots"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := slots.Update(tt.prev, tt.ids, tt.weights, tt.zones, tt.count, tt.replicas)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if strings.Contains(tt.want, "slots") && !strings.Contains(tt.want, "rows") && !errors.Is(err, slots.ErrCount) {
				t.Errorf("error %v is not ErrCount", err)
			}
		})
	}
	for name, rows := range map[string]slots.Rows{
		"no rows": nil, "no slots": {{}}, "a hole": {{0, none}}, "a hole in row 1": {{0, 1}, {1, none}},
		"row 1 without row 0": {{none, none}, {0, 1}}, "unknown node": {{3}}, "a node twice": {{0}, {0}},
	} {
		if _, err := slots.New(3, rows); err == nil {
			t.Errorf("New accepted %s", name)
		}
	}
	if _, err := slots.New(-1, good); err == nil {
		t.Error("New accepted -1 nodes")
	}
}

// With CRC16 as the key hash and 16384 slots, a slot is the slot of Redis Cluster.
func TestRedisSlots(t *testing.T) {
	ids, weights := names(5)
	table := mustNew(t, 5, mustBuild(t, ids, weights, nil, slots.DefaultCount, 1))
	hash, err := keyhash.New(keyhash.CRC16, "{}")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "123456789", "foo{}{bar}", "{user1000}.following", "キー{タグ}", "\x00\xff{\xfe}"} {
		if got, want := table.Slot(hash.Sum(key)), int(keyhash.Slot(key)); got != want {
			t.Errorf("slot of %q: %d, Redis has %d", key, got, want)
		}
	}
}

// Field case weight-04: 0 is a drain, never a crash and never 1.
func TestWeight04(t *testing.T) {
	ids := []string{"a", "b"}
	for replicas := 1; replicas <= 2; replicas++ {
		both := mustBuild(t, ids, []uint32{1, 1}, nil, slots.DefaultCount, replicas)
		drained, report := mustUpdate(t, both, ids, []uint32{1, 0}, nil, slots.DefaultCount, replicas)
		had := tally(2, both[0])[1]
		if moved := (2 - replicas) * had; report.Moves != moved || report.Bound != moved || report.PrimaryMoves != had || report.Copies != 1 {
			t.Errorf("report %+v, want exactly b's %d slots", report, had)
		}
		table := mustNew(t, 2, drained)
		if got := table.AppendReplicas(nil, 42, 2); !cmp.Equal(got, []int{0}) {
			t.Errorf("2 replicas: %v, want a alone", got)
		}
		nobody, report := mustUpdate(t, drained, ids, []uint32{0, 0}, nil, slots.DefaultCount, replicas)
		if report != (slots.Report{}) {
			t.Errorf("all zero: report %+v", report)
		}
		table = mustNew(t, 2, nobody)
		if got := table.Locate(42); got != -1 || len(table.AppendReplicas(nil, 42, 2)) != 0 {
			t.Errorf("all zero: owner %d", got)
		}
		again, report := mustUpdate(t, nobody, ids, []uint32{1, 1}, nil, slots.DefaultCount, replicas)
		if !cmp.Equal(again, both) || report.Moves != replicas*slots.DefaultCount {
			t.Errorf("from nobody to both: not the first table, report %+v", report)
		}
	}
	if rows := mustBuild(t, nil, nil, nil, 16, 2); mustNew(t, 0, rows).Locate(1) != -1 {
		t.Error("no nodes: an owner")
	}
}

// Field case mig-01: targets differ by one slot at most, a drained node ends
// with none, and a second plan is empty.
func TestMig01(t *testing.T) {
	plan := func(t *testing.T, prev slots.Rows, weights []uint32, lo, hi int) (slots.Rows, slots.Report) {
		t.Helper()
		ids, _ := names(len(weights))
		next, report := mustUpdate(t, prev, ids, weights, nil, slots.DefaultCount, 1)
		sum := 0
		for i, c := range tally(len(ids), next[0]) {
			sum += c
			if weights[i] == 0 && c != 0 || weights[i] > 0 && (c < lo || c > hi) {
				t.Errorf("node %d of weight %d: %d slots, want %d to %d", i, weights[i], c, lo, hi)
			}
		}
		if sum != slots.DefaultCount || report.Moves != report.Bound {
			t.Errorf("%d slots in all, report %+v", sum, report)
		}
		same, again := mustUpdate(t, next, ids, weights, nil, slots.DefaultCount, 1)
		if again.Moves != 0 || !cmp.Equal(same, next) {
			t.Errorf("second plan: %+v", again)
		}
		return next, report
	}
	t.Run("4 nodes, drain one", func(t *testing.T) {
		rows := slots.Rows{make([]uint16, slots.DefaultCount)}
		for s := range rows[0] {
			rows[0][s] = uint16(s / 4096)
		}
		if _, r := plan(t, rows, []uint32{1, 0, 1, 1}, 5461, 5462); r.Moves != 4096 {
			t.Errorf("%d slots moved, the node had 4096", r.Moves)
		}
	})
	t.Run("one node, add 200, drain one", func(t *testing.T) {
		weights := slices.Repeat([]uint32{1}, 201)
		all := slots.Rows{make([]uint16, slots.DefaultCount)}
		rows, r := plan(t, all, weights, 81, 82)
		if r.Moves != slots.DefaultCount-82 {
			t.Errorf("%d slots moved, want all but 82", r.Moves)
		}
		had := tally(201, rows[0])[1]
		weights[1] = 0
		if _, r := plan(t, rows, weights, 81, 82); r.Moves != had {
			t.Errorf("%d slots moved, the node had %d", r.Moves, had)
		}
	})
	t.Run("1:1:1", func(t *testing.T) { plan(t, nil, []uint32{1, 1, 1}, 5461, 5462) })
}

// Another count takes each slot from the old one that holds its middle.
func TestResize(t *testing.T) {
	ids, weights := names(4)
	small := mustBuild(t, ids, weights, nil, 1024, 2)
	large, report := mustUpdate(t, small, ids, weights, nil, 4096, 2)
	if report.Moves != 0 {
		t.Errorf("four slots for one: %d moves", report.Moves)
	}
	for s := range 4096 {
		if large[0][s] != small[0][s/4] {
			t.Fatalf("slot %d: primary %d, slot %d had %d", s, large[0][s], s/4, small[0][s/4])
		}
	}
	if back, report := mustUpdate(t, large, ids, weights, nil, 1024, 2); report.Moves != 0 || !cmp.Equal(back, small) {
		t.Errorf("and back: %d moves", report.Moves)
	}
}

// More copies: nothing that is there moves; fewer: nothing moves at all.
func TestReplicasChange(t *testing.T) {
	ids, weights := names(9)
	zones := cycle(9, 3)
	two := mustBuild(t, ids, weights, zones, 1000, 2)
	three, report := mustUpdate(t, two, ids, weights, zones, 1000, 3)
	if report.Moves != 1000 || report.Bound != 1000 || report.PrimaryMoves != 0 {
		t.Errorf("2 to 3: %+v", report)
	}
	if d := cmp.Diff(two, three[:2]); d != "" {
		t.Errorf("rows 0 and 1 changed:\n%s", d)
	}
	one, report := mustUpdate(t, three, ids, weights, zones, 1000, 1)
	if report.Moves != 0 || !slices.Equal(one[0], three[0]) {
		t.Errorf("3 to 1: %+v", report)
	}
}

func ExampleUpdate() {
	ids := []string{"a", "b", "c", "d"}
	zones := []uint16{1, 1, 2, 2}
	rows, _ := slots.Build(ids, []uint32{1, 1, 1, 0}, zones, slots.DefaultCount, 2)
	rows, report, _ := slots.Update(rows, ids, []uint32{1, 1, 1, 1}, zones, slots.DefaultCount, 2)
	fmt.Println(report.Moves, "copies moved to the new node; at least", report.Bound, "had to")
	table, _ := slots.New(len(ids), rows)
	for _, i := range table.AppendReplicas(nil, 0x9ddfea08eb382d69, 2) {
		fmt.Println("node", ids[i], "in zone", zones[i])
	}
	// Output:
	// 8192 copies moved to the new node; at least 8192 had to
	// node d in zone 2
	// node b in zone 1
}
