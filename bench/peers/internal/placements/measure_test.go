package placements

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/bench/internal/peertable"
	"github.com/shardd/shardd/internal/floorbench"
)

var small = Config{Keys: 2000, Pairs: 1, ExactKeys: 20000, Slowest: time.Minute}

// Every subject can be built, changed and asked, and finds a node that is there.
func TestEverySubject(t *testing.T) {
	present := map[string]bool{}
	for _, n := range floorbench.Names(10) {
		present[n] = true
	}
	for _, s := range Subjects() {
		t.Run(s.Name, func(t *testing.T) {
			m, err := s.New(floorbench.Names(10))
			if err != nil {
				t.Fatal(err)
			}
			keys := floorbench.Keys(3001)
			check := func(gone, extra string) {
				t.Helper()
				sum := 0
				for _, k := range keys {
					o := m.Owner(k)
					if !present[o] && o != extra || o == gone {
						t.Fatalf("%s: owner %q, with %q gone and %q there", k, o, gone, extra)
					}
					sum += len(o)
				}
				if got := m.Pass(keys); got != sum {
					t.Errorf("Pass = %d, by owners %d", got, sum)
				}
			}
			check("", "")
			if err := m.Remove("node-00003"); err != nil {
				t.Fatal(err)
			}
			check("node-00003", "")
			if err := m.Add("node-00005-b"); err != nil {
				t.Fatal(err)
			}
			check("node-00003", "node-00005-b")
		})
	}
}

// What is known of the libraries: these move keys between nodes that stay.
func TestMovementFound(t *testing.T) {
	got := map[string]*peertable.Exact{}
	for _, p := range Measure(Subjects(), []int{10}, small, func(peertable.Placement) {}) {
		if p.Left != "" {
			t.Errorf("%s was left out: %s", p.Subject, p.Left)
		}
		if p.Speed.Ratio <= 0 || p.Speed.Key <= 0 {
			t.Errorf("%s: speed %+v", p.Subject, p.Speed)
		}
		if p.Exact == nil {
			continue
		}
		got[p.Subject] = p.Exact
		if p.Ours && p.Exact.Needless != 0 {
			t.Errorf("%s moves %.3f of the minimum needlessly", p.Subject, p.Exact.Needless)
		}
		if p.Exact.Peak < 1 || p.Exact.Peak > 3 {
			t.Errorf("%s: peak %.3f", p.Subject, p.Exact.Peak)
		}
	}
	for _, name := range []string{"dgryski/go-jump and a list", "kkdai/maglev, 65537", "buraksezer/consistent, 16381 partitions"} {
		if got[name].Needless == 0 {
			t.Errorf("%s moves no key needlessly?", name)
		}
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	failing := Subject{Name: "failing", New: func([]string) (Instance, error) { return nil, errors.New("cannot") }}
	few := Subject{Name: "few", MaxNodes: 5, Why: "five at most", New: Subjects()[0].New}
	slow := Subjects()[0]
	c := small
	c.Slowest = 1 // ns
	f := func(s Subject, c Config, sizes []int, want string) {
		t.Helper()
		list := Measure([]Subject{s}, sizes, c, func(peertable.Placement) {})
		if got := list[len(list)-1].Left; !strings.Contains(got, want) {
			t.Errorf("%s: left out because of %q, want %q", s.Name, got, want)
		}
	}
	f(failing, small, []int{10}, "cannot")
	f(few, small, []int{10}, "five at most")
	f(slow, c, []int{10, 20}, "building would take")
}

func TestGrowth(t *testing.T) {
	var g growth
	if got := g.at(10); got != 0 {
		t.Errorf("nothing known: %v", got)
	}
	g.note(10, time.Millisecond)
	if got := g.at(100); got != 100*time.Millisecond {
		t.Errorf("one size: %v, want the square", got)
	}
	g.note(100, time.Second) // cubic
	if got := g.at(1000).Round(time.Second); got != 1000*time.Second {
		t.Errorf("two sizes: %v", got)
	}
}
