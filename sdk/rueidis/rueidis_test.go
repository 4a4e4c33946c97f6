package rueidis_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/realserver"
	"github.com/shardd/shardd/sdk"
	shardrueidis "github.com/shardd/shardd/sdk/rueidis"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, n, use int) (*shardtest.Plane, []topology.Node, *shardrueidis.Client) {
	t.Helper()
	var nodes []topology.Node
	for i, s := range realserver.ForTest(t, realserver.Redis(), n) {
		nodes = append(nodes, topology.Node{ID: fmt.Sprint("r", i), Addr: s.Addr, Weight: 1})
	}
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring, HashTag: "{}"}, Nodes: nodes[:use]})
	return plane, nodes, newClient(t, plane, shardrueidis.Config{})
}

func newClient(t *testing.T, plane *shardtest.Plane, cfg shardrueidis.Config) *shardrueidis.Client {
	t.Helper()
	c := shardrueidis.New(plane.Client(), cfg)
	t.Cleanup(c.Close)
	return c
}

func builder(t *testing.T, c *shardrueidis.Client) rueidis.Builder {
	t.Helper()
	b, err := c.B()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCommands: each key is on its owner's server; commands of many keys are split or
// refused.
func TestCommands(t *testing.T) {
	plane, _, c := start(t, 3, 3)
	ctx, b := t.Context(), builder(t, c)
	keys, values, want := []string{}, map[string]string{}, map[string]string{}
	for i := range 60 {
		key := fmt.Sprint("user:", i)
		keys, values[key], want[key] = append(keys, key), fmt.Sprint(i), fmt.Sprint(i)
	}
	if err := c.MSet(ctx, values); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	all, err := c.MGet(ctx, append(keys, "nobody"))
	if err != nil || len(all) != 61 {
		t.Fatal(len(all), err)
	}
	for k, m := range all {
		if v, err := m.ToString(); err == nil {
			got[k] = v
		} else if !rueidis.IsRedisNil(err) || k != "nobody" {
			t.Errorf("%s: %v", k, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := c.ForEachNode(func(n topology.Node, r rueidis.Client) error {
		has, err := r.Do(ctx, r.B().Keys().Pattern("*").Build()).AsStrSlice()
		for _, k := range has {
			if plane.Owner(k) != n.ID {
				t.Errorf("%s is on %s, its owner is %s", k, n.ID, plane.Owner(k))
			}
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	var cmds rueidis.Commands
	for i, k := range keys {
		cmds = append(cmds, b.Append().Key(k).Value("!").Build(), b.Get().Key(k).Build())
		want[k] = fmt.Sprint(i, "!")
	}
	cmds = append(cmds, b.Ping().Build())
	results := c.DoMulti(ctx, cmds...)
	for i, k := range keys {
		if v, err := results[2*i+1].ToString(); err != nil || v != want[k] {
			t.Errorf("%s: %q, %v", k, v, err)
		}
	}
	if err := results[len(results)-1].Error(); !errors.Is(err, shardrueidis.ErrNoKey) {
		t.Errorf("ping: %v", err)
	}
	if v, err := c.DoCache(ctx, b.Get().Key(keys[0]).Cache(), time.Minute).ToString(); err != nil || v != "0!" {
		t.Errorf("cached: %q, %v", v, err)
	}
	if n, err := c.Del(ctx, append(keys, "nobody")...); n != 60 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	refusals(t, c, b)
}

func refusals(t *testing.T, c *shardrueidis.Client, b rueidis.Builder) {
	t.Helper()
	refused := 0
	for i := range 20 { // some pair is on two nodes
		err := c.Do(t.Context(), b.Sinter().Key("a", fmt.Sprint("b", i)).Build()).Error()
		if errors.Is(err, shardrueidis.ErrCrossNode) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	if err := c.Do(t.Context(), b.Sinter().Key("{t}a", "{t}b").Build()).Error(); err != nil {
		t.Error(err)
	}
	if err := c.Do(t.Context(), b.Dbsize().Build()).Error(); !errors.Is(err, shardrueidis.ErrNoKey) {
		t.Error(err)
	}
	if err := c.Node("ch", func(n rueidis.Client) error {
		return n.Do(t.Context(), n.B().Publish().Channel("ch").Message("m").Build()).Error()
	}); err != nil {
		t.Error(err)
	}
}

// TestFollows: keys go over to a node that joined and back from one that left.
func TestFollows(t *testing.T) {
	plane, nodes, c := start(t, 2, 1)
	b := builder(t, c)
	set := func() {
		t.Helper()
		for i := range 50 {
			k := fmt.Sprint(i)
			if err := c.Do(t.Context(), b.Set().Key(k).Value(plane.Owner(k)).Build()).Error(); err != nil {
				t.Fatal(err)
			}
			if v, err := c.Do(t.Context(), b.Get().Key(k).Build()).ToString(); err != nil || v != plane.Owner(k) {
				t.Errorf("%s: %q, %v", k, v, err)
			}
		}
	}
	set()
	plane.Add(nodes[1])
	set()
	plane.Remove("r0")
	set()
}

func TestErrors(t *testing.T) {
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}})
	c := shardrueidis.New(plane.Client(), shardrueidis.Config{})
	defer c.Close()
	if _, err := c.B(); !errors.Is(err, sdk.ErrNoNodes) {
		t.Error(err)
	}
	if _, err := c.MGet(t.Context(), []string{"a", "b"}); !errors.Is(err, sdk.ErrNoNodes) {
		t.Error(err)
	}
	plane.Add(topology.Node{ID: "a", Weight: 1})
	if _, err := c.B(); err == nil {
		t.Error("a node without address")
	}
}
