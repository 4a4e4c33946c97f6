package experiment

import (
	"context"
	"time"

	"github.com/shardd/shardd/resilience/budget"
)

// retry: a fleet falls to a tenth of its capacity for ten seconds while 1,000 new
// requests a second come, each with up to three attempts.
func retry() *Experiment {
	return &Experiment{
		Name: "retry", Page: "resilience.md", About: "an outage of ten seconds without retries, with them, with jitter and with a budget",
		Defaults: Params{},
		Run:      runRetry,
		Plot:     plotRetry,
	}
}

// outage is the set-up, second by second; requests are whole numbers.
type outage struct {
	attempts int
	wait     func(k int) int // seconds before attempt k+1, spread over as many; 0: the next second
	budget   *budget.Budget

	due                           [][maxAttempts]int
	peak, sent, served, recovered int
	loads                         []int
}

const (
	maxAttempts    = 3
	outageSeconds  = 60
	newPerSecond   = 1000
	fullCapacity   = 1200
	outageCapacity = 120
)

func runRetry(context.Context, *Env) ([]Row, error) {
	atOnce := func(int) int { return 0 }
	jitter := func(k int) int { return 2 << k }
	b, err := budget.New(budget.Config{Share: .1, Min: -1, Window: time.Second})
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, c := range []struct {
		name   string
		o      outage
		sought [4]float64
	}{
		{"none", outage{attempts: 1, wait: atOnce}, [4]float64{1000, 60000, 1200, 1}},
		{"immediate", outage{attempts: 3, wait: atOnce}, [4]float64{2876, 80068, 1200, 6}},
		{"jitter", outage{attempts: 3, wait: jitter}, [4]float64{2820, 84556, 1200, 20}},
		{"budget", outage{attempts: 3, wait: jitter, budget: b}, [4]float64{1100, 61170, 1200, 4}},
	} {
		o := c.o
		o.run()
		row := Row{Params: []Param{{"retries", c.name}}}
		for i, x := range []int{o.peak, o.sent, o.served, o.recovered} {
			name := []string{"peak_rps", "sent", "served_in_outage", "recovery_s"}[i]
			row.Set(name, float64(x))
			row.Checks = append(row.Checks, exactly(name, c.sought[i]))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (o *outage) run() {
	o.due = make([][maxAttempts]int, outageSeconds+100)
	for second := range outageSeconds {
		load := o.due[second]
		load[0] = newPerSecond
		if o.budget != nil {
			o.admit(time.Duration(second)*time.Second, &load)
		}
		o.second(second, load)
	}
}

// admit drops the retries beyond the budget; those with most attempts go first.
func (o *outage) admit(now time.Duration, load *[maxAttempts]int) {
	for range newPerSecond {
		o.budget.Request(now)
	}
	for k := maxAttempts - 1; k > 0; k-- {
		admitted := 0
		for range load[k] {
			if o.budget.Retry(now) {
				admitted++
			}
		}
		load[k] = admitted
	}
}

func (o *outage) second(second int, load [maxAttempts]int) {
	capacity, out := fullCapacity, second >= 10 && second < 20
	if out {
		capacity = outageCapacity
	}
	total := 0
	for _, n := range load {
		total += n
	}
	o.loads = append(o.loads, total)
	o.peak, o.sent = max(o.peak, total), o.sent+total
	if out {
		o.served += min(total, capacity)
	}
	if second > 19 && o.recovered == 0 && total <= newPerSecond+50 {
		o.recovered = second - 19
	}
	if total <= capacity {
		return
	}
	for k := range o.attempts - 1 {
		failed := int(float64(load[k]) * (float64(total-capacity) / float64(total)))
		o.again(second, k, failed)
	}
}

// again schedules the next attempt of those that failed attempt k.
func (o *outage) again(second, k, failed int) {
	wait := o.wait(k)
	if wait == 0 {
		o.due[second+1][k+1] += failed
		return
	}
	for i := range wait {
		o.due[second+wait+i][k+1] += failed / wait
	}
}

func plotRetry([]Row) map[string]Picture {
	atOnce := func(int) int { return 0 }
	jitter := func(k int) int { return 2 << k }
	b, err := budget.New(budget.Config{Share: .1, Min: -1, Window: time.Second})
	if err != nil {
		return nil
	}
	var list []Series
	for _, c := range []struct {
		name string
		o    outage
	}{
		{"no retries", outage{attempts: 1, wait: atOnce}},
		{"at once", outage{attempts: 3, wait: atOnce}},
		{"backoff and jitter", outage{attempts: 3, wait: jitter}},
		{"and a budget of 10 %", outage{attempts: 3, wait: jitter, budget: b}},
	} {
		c.o.run()
		s := Series{Name: c.name}
		for i, x := range c.o.loads {
			s.X, s.Y = append(s.X, float64(i)), append(s.Y, float64(x))
		}
		list = append(list, s)
	}
	return pictureOf("retry", Picture{
		Title: "Requests a second, capacity a tenth from 10 s to 20 s", X: "s", Y: "requests/s", Right: true, Series: list,
	})
}
