package affinity_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/sdk/affinity"
)

// orderOf is a rendezvous order: a new node comes in somewhere, the others keep theirs.
func orderOf(session string, nodes []string) []string {
	score := func(n string) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, session, "/", n)
		x := h.Sum64()
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		return x ^ x>>33
	}
	out := slices.Clone(nodes)
	sort.Slice(out, func(i, j int) bool { return score(out[i]) > score(out[j]) })
	return out
}

// TestSessionRules goes through the rules one by one.
func TestSessionRules(t *testing.T) {
	s := affinity.NewSessions(affinity.SessionConfig{Idle: time.Minute, Low: .5})
	loads := map[string]float64{}
	load := func(n string) (float64, float64) { return loads[n], 10 }
	now := time.Duration(0)
	f := func(order, want string, wantMoved bool) {
		t.Helper()
		now += time.Second
		node, moved := s.Pick("s", slices.Collect(func(yield func(string) bool) {
			for _, r := range order {
				if !yield(string(r)) {
					return
				}
			}
		}), load, now)
		if node != want || moved != wantMoved {
			t.Errorf("at %v: %s, %v, want %s, %v", now, node, moved, want, wantMoved)
		}
	}
	f("ab", "a", false)
	loads["a"] = 10
	f("ab", "b", true) // at its cap
	loads["a"] = 5
	f("ab", "b", false) // not below the lower threshold
	loads["b"] = 99
	f("ab", "b", false)
	loads["a"] = 4
	f("ab", "a", true)
	now += time.Minute
	f("ba", "a", false) // idle: begins anew; b is over its cap
	loads["b"], loads["c"] = 0, 9
	f("cab", "a", false) // scale-out, but c has much to do
	loads["c"] = 1
	f("cab", "c", true) // once
	loads["c"] = 99
	f("cab", "c", false) // and not again
	f("ab", "a", true)   // c has left
	loads["a"], loads["b"] = 30, 20
	now += time.Hour
	f("ab", "b", false) // all over: the least
	s.End("s")
	if n, moves := s.Stats(); n != 0 || moves != 4 || s.Where("s") != "" {
		t.Errorf("%d sessions, %d moves", n, moves)
	}
	if node, _ := s.Pick("s", nil, load, now); node != "" {
		t.Error(node)
	}
}

// TestSpillsAgain: a session that is back at its owner leaves it again when that is at
// its cap again: coming back is no move for a scale-out.
func TestSpillsAgain(t *testing.T) {
	s := affinity.NewSessions(affinity.SessionConfig{})
	at := 0.0
	load := func(n string) (float64, float64) { return map[string]float64{"a": at}[n], 10 }
	for i := range 10 {
		for _, step := range []struct {
			load float64
			want string
		}{{9, "a"}, {10, "b"}, {9, "b"}, {7, "a"}} {
			at = step.load
			if node, _ := s.Pick("s", []string{"a", "b"}, load, 0); node != step.want {
				t.Fatalf("round %d, load %v of 10: %s", i, at, node)
			}
		}
	}
}

// TestScaleOut: whatever loads do, a session whose owner changes at a scale-out moves
// at most once afterwards, and the others do not move because of it.
func TestScaleOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := affinity.NewSessions(affinity.SessionConfig{})
		nodes := []string{"a", "b", "c"}
		var loads map[string]float64
		load := func(n string) (float64, float64) { return loads[n], 10 }
		draw := func() {
			loads = map[string]float64{}
			for _, n := range []string{"a", "b", "c", "d"} {
				loads[n] = rapid.Float64Range(0, 15).Draw(t, n)
			}
		}
		const sessions = 12
		at := map[string]string{}
		round := func(count map[string]int) {
			draw()
			for i := range sessions {
				id := fmt.Sprint("s", i)
				order := orderOf(id, nodes)
				node, moved := s.Pick(id, order, load, 0)
				if was, ok := at[id]; ok && moved != (was != node) {
					t.Fatalf("%s went from %s to %s, moved %v", id, was, node, moved)
				}
				if moved {
					count[id]++
				}
				if !slices.Contains(order, node) {
					t.Fatalf("%s is on %s of %v", id, node, order)
				}
				at[id] = node
			}
		}
		for range rapid.IntRange(1, 5).Draw(t, "before") {
			round(map[string]int{})
		}
		nodes = append(nodes, "d")
		count := map[string]int{}
		for range rapid.IntRange(1, 10).Draw(t, "after") {
			round(count)
		}
		for id, n := range count {
			if orderOf(id, nodes)[0] == "d" && n > 1 {
				t.Fatalf("%s moved %d times", id, n)
			}
		}
	})
}

// TestSessionBounds: memory is bounded, and what was quiet for longest goes first.
func TestSessionBounds(t *testing.T) {
	s := affinity.NewSessions(affinity.SessionConfig{Max: 10, Idle: time.Hour})
	full := func(n string) (float64, float64) { return 1, map[string]float64{"a": 1, "b": 2}[n] }
	for i := range 100 {
		s.Pick(fmt.Sprint(i), []string{"a", "b"}, full, time.Duration(i)*time.Second)
		s.Pick("often", []string{"a", "b"}, full, time.Duration(i)*time.Second)
		if n, _ := s.Stats(); n > 10 {
			t.Fatalf("%d sessions", n)
		}
	}
	if s.Where("often") != "b" || s.Where("99") != "b" || s.Where("5") != "" {
		t.Error("the wrong ones were forgotten")
	}
}

// TestChain: hashes are those of beginnings.
func TestChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "b")
		common := rapid.IntRange(0, len(a)).Draw(t, "common")
		b = append(slices.Clone(a[:common]), b...)
		chunk := rapid.IntRange(1, 17).Draw(t, "chunk")
		x, y := affinity.Chain(nil, 1, a, chunk), affinity.Chain(nil, 1, b, chunk)
		if len(x) != len(a)/chunk {
			t.Fatalf("%d hashes for %d bytes", len(x), len(a))
		}
		for i := range min(len(x), len(y)) {
			if same := slices.Equal(a[:(i+1)*chunk], b[:(i+1)*chunk]); same != (x[i] == y[i]) {
				t.Fatalf("chunk %d: equal beginnings %v, hashes %x and %x", i, same, x[i], y[i])
			}
		}
		if len(x) > 0 && affinity.Chain(nil, 2, a, chunk)[0] == x[0] {
			t.Fatal("the seed makes no difference")
		}
	})
	if affinity.Chain(nil, 0, []byte("x"), 0) != nil {
		t.Error("chunks of nothing")
	}
}

// TestPrefixes: the node that knows most comes first, as long as its load allows it.
func TestPrefixes(t *testing.T) {
	p := affinity.NewPrefixes(affinity.PrefixConfig{Idle: time.Minute, Nodes: 2})
	chain := affinity.Chain(nil, 0, []byte("system|user-1|question"), 7) // 3 chunks
	p.Note(chain[:1], "a", 0)
	p.Note(chain[:2], "b", time.Second)
	p.Note(chain[:3], "c", 2*time.Second)
	got := p.Candidates(nil, chain, 3*time.Second)
	if diff := cmp.Diff([]affinity.Candidate{{"c", 3}, {"b", 2}}, got); diff != "" { // a is the third for the first chunk
		t.Error(diff)
	}
	full := map[string]bool{}
	load := func(n string) (float64, float64) {
		if full[n] {
			return 2, 1
		}
		return 0, 1
	}
	f := func(want string, wantChunks int, order ...string) {
		t.Helper()
		if node, chunks := p.Pick(chain, order, load, 3*time.Second); node != want || chunks != wantChunks {
			t.Errorf("%s with %d chunks, want %s with %d", node, chunks, want, wantChunks)
		}
	}
	f("c", 3, "a", "b", "c")
	full["c"] = true
	f("b", 2, "a", "b", "c")
	f("a", 0, "a", "c") // b has left
	p.Forget("b")
	f("a", 0, "a", "b", "c")
	f("", 0)
	if got := p.Candidates(nil, chain, time.Hour); got != nil {
		t.Errorf("after an hour: %v", got)
	}
}

// TestPrefixBounds: memory is bounded; of a chain that is too long its beginning stays.
func TestPrefixBounds(t *testing.T) {
	p := affinity.NewPrefixes(affinity.PrefixConfig{Max: 5})
	long := affinity.Chain(nil, 0, make([]byte, 20), 1)
	p.Note(long, "a", 0)
	if got := p.Candidates(nil, long, 0); p.Len() != 5 || len(got) != 1 || got[0].Chunks != 5 {
		t.Errorf("%d prefixes, %v", p.Len(), got)
	}
}

func ExampleSessions() {
	sessions := affinity.NewSessions(affinity.SessionConfig{})
	inFlight := map[string]float64{"gpu-1": 8, "gpu-2": 1}
	load := func(node string) (float64, float64) { return inFlight[node], 8 }
	order := []string{"gpu-1", "gpu-2"} // sdk.Client.RouteN of the session's id

	node, _ := sessions.Pick("chat-42", order, load, 0)
	fmt.Println(node) // gpu-1 is full
	inFlight["gpu-1"] = 7
	node, _ = sessions.Pick("chat-42", order, load, time.Second)
	fmt.Println(node) // not below 80 % of its cap yet
	// Output:
	// gpu-2
	// gpu-2
}

func ExamplePrefixes() {
	prefixes := affinity.NewPrefixes(affinity.PrefixConfig{})
	idle := func(string) (float64, float64) { return 0, 1 }
	order := []string{"gpu-1", "gpu-2"}

	first := affinity.Chain(nil, 0, []byte("You are helpful. What is a shard?"), 8)
	prefixes.Note(first, "gpu-2", 0)
	second := affinity.Chain(nil, 0, []byte("You are helpful. What is a ring?"), 8)
	node, chunks := prefixes.Pick(second, order, idle, time.Second)
	fmt.Println(node, chunks)
	// Output: gpu-2 3
}

// Who has served how much of a prompt's beginning, longest first: for a choice of
// one's own.
func ExampleCandidate() {
	prefixes := affinity.NewPrefixes(affinity.PrefixConfig{})
	prompt := []byte("You are helpful. What is a shard?")
	prefixes.Note(affinity.Chain(nil, 0, prompt, 8), "gpu-2", 0)
	prefixes.Note(affinity.Chain(nil, 0, prompt[:16], 8), "gpu-1", 0)

	known := prefixes.Candidates(nil, affinity.Chain(nil, 0, prompt, 8), time.Second)
	for _, c := range known {
		fmt.Println(c.Node, c.Chunks, "chunks")
	}
	// Output:
	// gpu-2 4 chunks
	// gpu-1 2 chunks
}
