//go:build linux

package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// slack is what a test allows beyond what is promised: machines that run tests
// are busy. TestPercentiles shows the true times.
const slack = time.Minute

// groups are the experiments that are made one after another on one env.
var groups = []struct {
	name        string
	experiments []experiment
}{
	{"Store", []experiment{{"leader killed", leaderKilled}, {"member frozen", memberFrozen}, {"endpoint frozen", endpointFrozen}, {"all stopped", allStopped}, {"compacted", compacted}}},
	{"Servers", []experiment{{"server terminated", serverTerminated}, {"server killed", serverKilled},
		{"agent terminated", agentTerminated}, {"agent killed", agentKilled}, {"restored", restored}}},
}

// TestFaults makes every experiment once.
func TestFaults(t *testing.T) {
	requireEtcd(t)
	if *runs > 0 {
		t.Skip("TestPercentiles runs")
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.converge(t, time.Now())
			for _, x := range g.experiments {
				for _, f := range x.run(t, e) {
					t.Logf("%s: %v", f.what, f.took.Round(time.Millisecond))
					if f.promise >= 0 && f.took > f.promise+slack {
						t.Errorf("%s: %v, want %v", f.what, f.took, f.promise)
					}
				}
				if t.Failed() {
					t.Fatalf("%s failed", x.name)
				}
			}
			e.check(t)
		})
	}
}

// TestPercentiles makes every experiment -runs times and prints how long what is
// promised took. It is off without -runs.
func TestPercentiles(t *testing.T) {
	requireEtcd(t)
	if *runs <= 0 {
		t.Skip("give -args -runs 20")
	}
	for _, g := range groups {
		for _, x := range g.experiments {
			t.Run(x.name, func(t *testing.T) { repeat(t, x) })
		}
	}
}

func repeat(t *testing.T, x experiment) {
	e := newEnv(t)
	e.converge(t, time.Now())
	times := map[string][]time.Duration{}
	var rows []figure
	late := map[string]int{}
	for range *runs {
		figures := x.run(t, e)
		rows = figures
		for _, f := range figures {
			times[f.what] = append(times[f.what], f.took)
			if f.promise >= 0 && f.took > f.promise {
				late[f.what]++
			}
		}
	}
	e.check(t)
	for _, f := range rows {
		all := times[f.what]
		slices.Sort(all)
		at := func(p int) string { return fmt.Sprintf("%.2f", all[(len(all)-1)*p/100].Seconds()) }
		promise := "-"
		if f.promise >= 0 {
			promise = fmt.Sprintf("%.2f", f.promise.Seconds())
		}
		fmt.Println("|", strings.Join([]string{f.what, fmt.Sprint(len(all)), at(50), at(90), at(100), promise, fmt.Sprint(late[f.what])}, " | "), "|")
	}
}
