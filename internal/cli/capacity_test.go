package cli

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func capacityOf(t *testing.T, args ...string) capacityAnswer {
	t.Helper()
	out := call(t, Migrate, "", append([]string{"capacity", "-o", "json"}, args...)...)
	if out.code != 0 {
		t.Fatalf("%v: exit %d\n%s", args, out.code, out.stderr)
	}
	var c capacityAnswer
	if err := json.Unmarshal([]byte(out.stdout), &c); err != nil {
		t.Fatalf("%v\n%s", err, out.stdout)
	}
	return c
}

// TestCapacity: ten milliseconds on eight nodes at 90 % wait 8.77 ms; in four pools
// of two they wait 42.6.
func TestCapacity(t *testing.T) {
	c := capacityOf(t, "--rate", "720", "--service", "10ms", "--nodes", "8", "--split", "4,8")
	f := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-4*want {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	f("utilisation", c.Fleet.Utilisation, .9)
	f("mean wait", *c.Fleet.MeanWait, 8.7692e-3)
	f("in four pools", *c.Pools[0].MeanWait, 42.6316e-3)
	f("in eight pools", *c.Pools[1].MeanWait, 90e-3)
	if c.Target != nil || c.MaxUtilisation != nil {
		t.Errorf("a target out of nowhere: %+v", c)
	}

	c = capacityOf(t, "--rate", "1000", "--service", "10ms", "--wait", "5ms")
	f("nodes", float64(c.Fleet.Nodes), 12)
	if *c.Fleet.MeanWait > 5e-3 || *c.MaxUtilisation < c.Fleet.Utilisation {
		t.Errorf("%d nodes wait %v, may be used %v and are at %v", c.Fleet.Nodes, *c.Fleet.MeanWait, *c.MaxUtilisation, c.Fleet.Utilisation)
	}

	c = capacityOf(t, "--rate", "1000", "--service", "10ms", "--nodes", "9")
	if c.Fleet.MeanWait != nil || c.Fleet.Utilisation < 1 {
		t.Errorf("nine nodes do not keep up with ten: %+v", c.Fleet)
	}
}

func TestCapacityTable(t *testing.T) {
	out := call(t, Migrate, "", "capacity", "--rate", "12000", "--service", "5ms", "--wait", "10ms", "--quantile", ".99", "--split", "3")
	want := `load         12000 requests/s of 5ms, 1 at a time a node
target       wait at p99 at most 10ms
nodes        63
may be used  96.6 %

POOLS  NODES EACH  UTILISATION  WAIT AT ALL  MEAN WAIT  P50    P95     P99
1      63          95.24 %      60.70 %      1.01ms     323µs  4.16ms  6.84ms
3      21          95.24 %      76.06 %      3.8ms      2.1ms  13.6ms  21.7ms
`
	if out.code != 0 || out.stdout != want {
		t.Errorf("exit %d, %s\n%s\nwant\n%s", out.code, out.stderr, out.stdout, want)
	}
}

func TestCapacityRefused(t *testing.T) {
	f := func(code int, want string, args ...string) {
		t.Helper()
		out := call(t, Migrate, "", append([]string{"capacity"}, args...)...)
		if out.code != code || !strings.Contains(out.stderr, want) {
			t.Errorf("%v: exit %d, %s; want %d, %q", args, out.code, out.stderr, code, want)
		}
	}
	f(2, "--wait", "--rate", "1", "--service", "1s")
	f(2, "rate", "--service", "1s", "--nodes", "3")
	f(2, "service time", "--rate", "1", "--nodes", "3")
	f(2, "--quantile needs --wait", "--rate", "1", "--service", "1s", "--nodes", "3", "--quantile", ".5")
	f(2, "a wait of 0s", "--rate", "1", "--service", "1s", "--wait", "0s")
	f(2, "pools", "--rate", "1", "--service", "1s", "--nodes", "10", "--split", "3")
	f(1, "cannot be met", "--rate", "1e12", "--service", "1s", "--wait", "1s")
	f(2, "--output", "--rate", "1", "--service", "1s", "--nodes", "3", "-o", "topology")
}
