package cli

import (
	"strings"
	"testing"

	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
)

// TestWatch06 is field case watch-06 for the programs: one address accepts
// connections and never answers, one is closed, one works. In every order a call
// works within its own time; if none answers it ends with exit code 3 and names
// them.
func TestWatch06(t *testing.T) {
	good := serving(t)
	if end := call(t, Shardd, "", "apply", "-f", clusterFile(t, "a", "b"), "--server", good); end.code != ExitOK {
		t.Fatal(end.stderr)
	}
	hole, closed := etcdtest.BlackHole(t), etcdtest.FreeAddr(t)
	for _, order := range [][]string{{hole, closed, good}, {hole, good, closed}, {closed, hole, good}, {closed, good, hole}, {good, hole, closed}, {good, closed, hole}} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			end := call(t, Shardd, "", "get", "--server", strings.Join(order, ","), "--timeout", "1m")
			if end.code != ExitOK || !strings.Contains(end.stdout, "version") {
				t.Errorf("order %v: exit %d, %s", order, end.code, end.stderr)
			}
		})
	}
	t.Run("edit", func(t *testing.T) {
		t.Parallel()
		end := call(t, Shardd, "", "node", "weight", "a", "2", "--server", hole+","+closed+","+good, "--timeout", "1m")
		if end.code != ExitOK {
			t.Errorf("exit %d, %s", end.code, end.stderr)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		end := call(t, Shardd, "", "get", "--server", hole+","+closed, "--timeout", "1s")
		if end.code != ExitUnreachable || !strings.Contains(end.stderr, hole) || !strings.Contains(end.stderr, closed) {
			t.Errorf("exit %d, %s", end.code, end.stderr)
		}
	})
}
