package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/internal/realserver"
	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/migrate/foreign/rediscluster"
	"github.com/shardd/shardd/placement"
)

// masters starts n nodes that know each other and hold no slots.
func masters(t *testing.T, n int) (addrs, dirs []string, clients []*redis.Client) {
	t.Helper()
	buses := realserver.FreePorts(t, n)
	for i := range n {
		dir := t.TempDir()
		s := realserver.ForTest(t, realserver.Redis("--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(buses[i]), "--dir", dir,
			"--cluster-node-timeout", "5000"), 1)[0]
		c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { c.Close() })
		addrs, dirs, clients = append(addrs, s.Addr), append(dirs, dir), append(clients, c)
	}
	for i, c := range clients {
		if err := c.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, addr := range addrs {
		host, port, _ := strings.Cut(addr, ":")
		for _, c := range clients[:i] { // all at once, rather than by hearsay
			if err := c.Do(t.Context(), "CLUSTER", "MEET", host, port, buses[i]).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return addrs, dirs, clients
}

// await waits up to 20 s for a node to say so.
func await(t *testing.T, c *redis.Client, what string, says func(info, nodes string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		info, nodes := c.ClusterInfo(ctx).Val(), c.ClusterNodes(ctx).Val()
		if says(info, nodes) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: %s\n%s\n%s", c.Options().Addr, what, info, nodes)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A Redis Cluster of three masters that gets its slots from what export writes,
// is read live and from nodes.conf, and says of each key what the mapping does.
func TestRedisCluster(t *testing.T) {
	addrs, dirs, clients := masters(t, 3)
	for _, c := range clients {
		await(t, c, "nodes have not met", func(_, nodes string) bool { return strings.Count(nodes, " connected") == 3 })
	}
	cluster := write(t, "cluster.yaml", fmt.Sprintf(`cluster: live
compat: {mode: redis-slots}
nodes:
  - {id: a, addr: "%s", slots: "0-4000 9000-9999"}
  - {id: b, addr: "%s", slots: "4001-8999 16383"}
  - {id: c, addr: "%s", slots: "10000-16382"}
`, addrs[0], addrs[1], addrs[2]))
	declared := mapping(t, cluster, "")
	giveSlots(t, declared)
	for _, c := range clients {
		await(t, c, "the cluster is not whole", func(info, nodes string) bool {
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(nodes, " 10000-16382") && strings.Contains(nodes, "0-4000 9000-9999") && strings.Contains(nodes, "4001-8999 16383")
		})
	}
	r, err := rediscluster.Read(t.Context(), clients[1], "live")
	if err != nil {
		t.Fatal(err)
	}
	if r.Declared.Nodes[0].Addr != addrs[1] {
		t.Errorf("the node that was asked is not first: %+v", r.Declared.Nodes)
	}
	live, err := migrate.Next(nil, r.Declared)
	if err != nil {
		t.Fatal(err)
	}
	text, binary := keys(t)
	all := append(text, binary...)
	answers := make([]string, len(all))
	for i, k := range all {
		answers[i] = whoTakes(t, clients, k)
		slot := clients[0].ClusterKeySlot(t.Context(), k).Val()
		if h := live.Hash(k); int64(h>>50) != slot {
			t.Fatalf("%q: slot %d, Redis says %d", k, h>>50, slot)
		}
	}
	agrees(t, "declared", declared, all, answers)
	agrees(t, "read live", live, all, answers)
	agrees(t, "nodes.conf", mapping(t, filepath.Join(dirs[2], "nodes.conf"), ""), all, answers)
}

// giveSlots runs the commands that export writes for a mapping.
func giveSlots(t *testing.T, table *placement.Table) {
	t.Helper()
	e, err := foreign.Export(foreign.RedisCLI, table, foreign.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("redis-cli"); err != nil {
		if os.Getenv("SHARDD_REQUIRE_SERVICES") == "1" {
			t.Fatal(err)
		}
		t.Skip("redis-cli is not installed; install Debian's package redis-tools")
	}
	for line := range strings.Lines(string(e.Data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "OK" {
			t.Fatalf("%s%s%v", line, out, err)
		}
	}
}

// whoTakes returns the address of the only node that answers for key rather than
// naming another.
func whoTakes(t *testing.T, clients []*redis.Client, key string) string {
	t.Helper()
	takes := ""
	for _, c := range clients {
		err := c.Get(t.Context(), key).Err()
		switch {
		case errors.Is(err, redis.Nil) && takes == "":
			takes = c.Options().Addr
		case err == nil || !strings.HasPrefix(err.Error(), "MOVED "):
			t.Fatalf("%q at %s: %v, and %s takes it", key, c.Options().Addr, err, takes)
		}
	}
	if takes == "" {
		t.Fatalf("%q: nobody takes it", key)
	}
	return takes
}

// A go-redis Ring in this process, read from its options.
func TestGoRedisRing(t *testing.T) {
	servers := realserver.ForTest(t, realserver.Redis(), 3)
	text, binary := keys(t)
	all := append(text, binary...)
	addrs, yaml := make(map[string]string), "Addrs:\n"
	for i, s := range servers {
		name := fmt.Sprintf("shard/%d", i)
		addrs[name] = s.Addr
		yaml += fmt.Sprintf("  %s: %q\n", name, s.Addr)
		c := redis.NewClient(&redis.Options{Addr: s.Addr})
		pipe := c.Pipeline()
		for _, k := range all {
			pipe.Set(t.Context(), k, s.Addr, 0)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: addrs})
	defer ring.Close()
	answers := make([]string, len(all))
	for i, k := range all {
		var err error
		if answers[i], err = ring.Get(t.Context(), k).Result(); err != nil {
			t.Fatalf("%q: %v", k, err)
		}
	}
	agrees(t, "ring", mapping(t, write(t, "ring.yaml", yaml+"PoolSize: 3\n"), ""), all, answers)
}
