package sim

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/balance"
)

// random is a client that picks one of n servers at random.
func random(t testing.TB, n int) Client {
	t.Helper()
	set, err := NewSet(n)
	if err != nil {
		t.Fatal(err)
	}
	return Client{Picker: balance.NewRandom(set)}
}

func run(t testing.TB, c Config) *Result {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.Run()
}

func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if !(math.Abs(got-want) <= part*want) {
		t.Errorf("%s = %v, want %v +- %v %%", what, got, want, 100*part)
	}
}

// TestQueues compares what is served how with the formulas.
func TestQueues(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine, and a minute of it")
	}
	const rho = .7
	play := func(v Server, service Dist) *Result {
		t.Helper()
		slots := float64(max(1, v.Slots))
		return run(t, Config{Seed: 1, Servers: []Server{v}, Clients: []Client{random(t, 1)}, Rate: rho * slots,
			Service: service, Warmup: 1000 * Unit, Window: 200_000 * Unit})
	}
	fifo := play(Server{}, Exponential(1))
	near(t, "M/M/1 mean", fifo.Mean, 1/(1-rho), .03)
	near(t, "M/M/1 p99", fifo.Quantile(.99), math.Log(100)/(1-rho), .05)
	for i := 1; i < 6; i++ {
		near(t, "M/M/1 tail", fifo.Tail[i], math.Pow(rho, float64(i)), .08)
	}
	// Pollaczek and Khinchine: 1 + rho (1 + cv^2) / (2 (1 - rho)).
	for _, d := range []struct {
		name string
		cv2  float64
		dist Dist
	}{
		{"constant", 0, Constant(1)}, {"Erlang", .25, Erlang(4, 1)}, {"uniform", 1. / 3, Uniform(0, 2)},
		{"hyperexponential", 4, Hyper(1, 4)}, {"log-normal", 2, LogNormal(1, 2)},
	} {
		near(t, d.name, play(Server{}, d.dist).Mean, 1+rho*(1+d.cv2)/(2*(1-rho)), .06)
	}
	// Shared processors forget the distribution of work.
	near(t, "shared, exponential", play(Server{Discipline: Sharing}, Exponential(1)).Mean, 1/(1-rho), .03)
	near(t, "shared, hyperexponential", play(Server{Discipline: Sharing}, Hyper(1, 4)).Mean, 1/(1-rho), .05)
	near(t, "delay", play(Server{Discipline: Delay}, Exponential(1)).Mean, 1, .02)
	// Erlang C: 4 servers at .7 wait with .4287 for 1/(4 (1 - rho)).
	near(t, "M/M/4", play(Server{Slots: 4}, Exponential(1)).Mean, 1+.4287/(4*(1-rho)), .02)
}

// TestDistributions: means and variances are what their names say.
func TestDistributions(t *testing.T) {
	for _, d := range []struct {
		name      string
		mean, cv2 float64
		dist      Dist
	}{
		{"exponential", 2, 1, Exponential(2)}, {"constant", 2, 0, Constant(2)}, {"uniform", 2, 1. / 12, Uniform(1, 3)},
		{"Erlang", 2, .2, Erlang(5, 2)}, {"hyperexponential", 2, 3, Hyper(2, 3)}, {"log-normal", 2, .5, LogNormal(2, .5)},
		{"Pareto", 2, 1. / 8, Pareto(2, 4)}, {"choice", 2, 1, Choice(.5, Constant(0), Constant(4))},
	} {
		dice := NewDice(1, 1)
		sum, squares := 0., 0.
		const n = 400_000
		for range n {
			x := d.dist(dice)
			sum += x
			squares += x * x
		}
		mean := sum / n
		near(t, d.name+" mean", mean, d.mean, .01)
		if cv2 := squares/n/mean/mean - 1; math.Abs(cv2-d.cv2) > .05*d.cv2+1e-9 {
			t.Errorf("%s: cv^2 = %v, want %v", d.name, cv2, d.cv2)
		}
	}
}

// TestLimit: a full server refuses at once, and a policy hears of it.
func TestLimit(t *testing.T) {
	overloads := 0
	r := run(t, Config{Seed: 1, Servers: []Server{{Limit: 1}}, Clients: []Client{random(t, 1)}, Rate: 1, Window: 100_000 * Unit,
		Ended: func(e End) {
			if e.Result == balance.Overload {
				overloads++
				if e.Took != 0 {
					t.Errorf("a refusal took %v", e.Took)
				}
			}
		}})
	// Erlang B with one server and a load of 1.
	near(t, "refused", float64(r.Results[balance.Overload])/float64(r.Arrivals), .5, .02)
	if overloads != r.Results[balance.Overload] {
		t.Errorf("%d refusals were told, %d counted", overloads, r.Results[balance.Overload])
	}
}

// TestSharingRate: a processor-sharing server that gets slower serves what it has
// at the new rate.
func TestSharingRate(t *testing.T) {
	var ends []time.Duration
	s, err := New(Config{Servers: []Server{{Discipline: Sharing}}, Clients: []Client{random(t, 1)}, Service: Constant(1), Window: 10 * Unit,
		Ended: func(e End) { ends = append(ends, e.At) }})
	if err != nil {
		t.Fatal(err)
	}
	s.At(0, func() { s.Send(0, 0); s.Send(0, 0) }) // both done at 2
	s.At(Unit, func() { s.SetRate(0, .5) })        // half is done; the rest takes 2
	s.At(Unit, func() { s.Send(0, 0) })            // .5 + .5 + 1 left at rate .5
	s.Run()
	// Three share .5: the first two need .5 each, at 1/6: 3; then the third has .5 left at .5.
	want := []time.Duration{4 * Unit, 4 * Unit, 5 * Unit}
	if d := cmp.Diff(want, ends); d != "" {
		t.Error(d)
	}
	if b := s.Busy(0); b != 5*Unit {
		t.Errorf("busy for %v, want 5s", b)
	}
}

// TestLaws: whatever is simulated, each request ends once, in-flight counts are
// those of the servers, and the same seed gives the same run.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "servers")
		seed := rapid.Uint64().Draw(t, "seed")
		servers := make([]Server, n)
		for i := range servers {
			servers[i] = Server{
				Discipline: Discipline(rapid.IntRange(0, 2).Draw(t, "discipline")), Slots: rapid.IntRange(0, 3).Draw(t, "slots"),
				Limit: rapid.IntRange(0, 5).Draw(t, "limit"), Rate: rapid.SampledFrom([]float64{0, .5, 2}).Draw(t, "rate"),
			}
		}
		rate := rapid.Float64Range(.1, 2).Draw(t, "arrivals") * float64(n)
		play := func() *Result {
			set, err := NewSet(n)
			if err != nil {
				t.Fatal(err)
			}
			p, err := balance.NewP2C(set, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := Config{Seed: seed, Servers: servers, Clients: []Client{{Picker: p}}, Rate: rate, Warmup: 10 * Unit, Window: 100 * Unit}
			s, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			s.cfg.Ended = func(e End) {
				for i := range n {
					if held, flight := s.Load(i), set.Node(i).InFlight(); held != flight {
						t.Fatalf("server %d holds %d, %d in flight", i, held, flight)
					}
				}
			}
			return s.Run()
		}
		r := play()
		if ended := len(r.took); ended != r.Arrivals || r.Refused != 0 {
			t.Fatalf("%d arrivals, %d ends", r.Arrivals, ended)
		}
		if sum := sumOf(r.Picks); sum != r.Arrivals {
			t.Fatalf("%d arrivals, %d picks", r.Arrivals, sum)
		}
		if d := cmp.Diff(r, play(), cmp.AllowUnexported(Result{})); d != "" {
			t.Fatalf("the same seed, and another run: %s", d)
		}
	})
}

func sumOf(list []int) (sum int) {
	for _, x := range list {
		sum += x
	}
	return sum
}

// TestQueue: events come in the order of their times, and of their making.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var model []event
		for i := range uint32(rapid.IntRange(1, 300).Draw(t, "steps")) {
			if top, ok := q.top(); ok && rapid.Bool().Draw(t, "take") {
				k := 0
				for j := range model {
					if model[j].before(model[k]) {
						k = j
					}
				}
				if top != model[k] {
					t.Fatalf("top is %v, want %v", top, model[k])
				}
				q.take()
				model = slices.Delete(model, k, k+1)
				continue
			}
			e := event{at: rapid.Int64Range(0, 20).Draw(t, "at"), order: i - 100} // wraps round
			q.push(e)
			model = append(model, e)
		}
		if _, ok := q.top(); ok != (len(model) > 0) {
			t.Fatalf("%d events are left, top says %t", len(model), ok)
		}
	})
}

func TestNth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 200).Draw(t, "x")
		k := rapid.IntRange(0, len(x)-1).Draw(t, "k")
		sorted := slices.Sorted(slices.Values(x))
		if got := nth(x, k); got != sorted[k] {
			t.Fatalf("element %d is %d, want %d", k, got, sorted[k])
		}
	})
}

func TestRefused(t *testing.T) {
	f := func(change func(*Config)) {
		t.Helper()
		c := Config{Servers: Equal(2, Server{}), Clients: []Client{random(t, 2)}, Rate: 1}
		change(&c)
		if _, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	f(func(c *Config) { c.Servers = nil })
	f(func(c *Config) { c.Clients = nil })
	f(func(c *Config) { c.Clients[0].Picker = nil })
	f(func(c *Config) { c.Rate = math.NaN() })
	f(func(c *Config) { c.Rate = math.Inf(1) })
	f(func(c *Config) { c.Window = -1 })
	f(func(c *Config) { c.Warmup, c.Window = math.MaxInt64, math.MaxInt64 })
	f(func(c *Config) { c.Servers[1].Rate = -1 })
	f(func(c *Config) { c.Servers[1].Discipline = 3 })
}

// TestOddTimes: a distribution that draws what the clock cannot count does not turn
// time round.
func TestOddTimes(t *testing.T) {
	for _, x := range []float64{math.Inf(1), 1e300, math.NaN(), -1, 0} {
		for _, d := range []Discipline{FIFO, Sharing, Delay} {
			now := time.Duration(0)
			r := run(t, Config{Seed: 1, Servers: []Server{{Discipline: d, Rate: .5}}, Clients: []Client{random(t, 1)}, Rate: 1, Window: 3 * Unit,
				Service: Constant(x), Ended: func(e End) {
					if e.At < now || e.Took < 0 {
						t.Errorf("service of %v: an end at %v after %v, took %v", x, e.At, now, e.Took)
					}
					now = e.At
				}})
			if !(r.Mean >= 0) {
				t.Errorf("service of %v: mean %v", x, r.Mean)
			}
		}
		if x == 0 { // arrivals that take no time never end
			continue
		}
		c := Config{Seed: 1, Servers: Equal(1, Server{}), Clients: []Client{random(t, 1)}, Rate: 1e-300, Window: 3 * Unit}
		if r := run(t, c); r.Arrivals != 0 {
			t.Errorf("%d arrivals in no time", r.Arrivals)
		}
	}
}

// TestEmptySet: a pick that fails is counted, and told.
func TestEmptySet(t *testing.T) {
	set, err := balance.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	r := run(t, Config{Servers: Equal(1, Server{}), Clients: []Client{{Picker: balance.NewRandom(set)}}, Rate: 10, Window: 10 * Unit,
		Refused: func(_ int, err error) {
			if told++; !errors.Is(err, balance.ErrNoNode) {
				t.Error(err)
			}
		}})
	if r.Refused == 0 || r.Refused != told || r.Arrivals != 0 || r.Quantile(.5) != 0 {
		t.Errorf("%d refused, %d told, %d arrivals", r.Refused, told, r.Arrivals)
	}
}

// TestEvery: a repeated call comes before what else happens at its times, and ends
// with the run.
func TestEvery(t *testing.T) {
	var at []time.Duration
	s, err := New(Config{Servers: Equal(1, Server{}), Clients: []Client{random(t, 1)}, Rate: 1, Window: 3 * Unit, Service: Constant(.1)})
	if err != nil {
		t.Fatal(err)
	}
	s.Every(Unit, func() { at = append(at, s.Now()) })
	s.Run()
	if len(at) < 3 || at[0] != 0 || at[1] != Unit || at[2] != 2*Unit {
		t.Errorf("called at %v", at)
	}
}

// TestEveryComesFirst: a repeated function sees the servers as they were, whatever
// ends at that time and however long it has been due to.
func TestEveryComesFirst(t *testing.T) {
	set, err := NewSet(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		Servers: Equal(1, Server{}), Service: Constant(4), Window: 7 * Unit,
		Clients: []Client{{Picker: balance.NewRandom(set)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen []int
	s.Every(2*Unit, func() { seen = append(seen, s.Load(0)) })
	s.At(0, func() { s.Send(0, 0) })
	s.Run()
	if diff := cmp.Diff([]int{0, 1, 1, 0}, seen); diff != "" {
		t.Errorf("loads at 0, 2, 4 and 6 (-want +got):\n%s", diff)
	}
}
