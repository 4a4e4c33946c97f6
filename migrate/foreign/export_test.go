package foreign_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// table is the first publication of nodes under a spec.
func table(t interface {
	Helper()
	Fatal(...any)
}, spec topology.Spec, nodes ...topology.Node) *placement.Table {
	t.Helper()
	for i := range nodes {
		if nodes[i].ID == "" {
			nodes[i].ID = fmt.Sprintf("n%d", i+1)
		}
		if spec.Compat.Mode != "" && nodes[i].Position == 0 {
			nodes[i].Position = uint32(i + 1)
		}
	}
	d := topology.Draft{Cluster: "cache", ID: topology.ClusterID{7}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: spec.Normal(), Nodes: nodes}
	tab, err := placement.Update(nil, d)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func mode(f topology.Foreign) topology.Spec { return topology.Spec{Compat: f} }

func export(t *testing.T, f foreign.Format, tab *placement.Table, o foreign.ExportOptions, want string, notes ...string) {
	t.Helper()
	e, err := foreign.Export(f, tab, o)
	if err != nil {
		t.Errorf("%s: %v", f, err)
		return
	}
	if strings.TrimSpace(string(e.Data)) != strings.TrimSpace(want) {
		t.Errorf("%s: got\n%swant\n%s", f, e.Data, want)
	}
	if !slices.Equal(e.Notes, notes) {
		t.Errorf("%s: notes %q, want %q", f, e.Notes, notes)
	}
	if err := foreign.Same(f, e.Data, tab, o); err != nil {
		t.Error(err)
	}
	if err := foreign.Same(f, append(e.Data, ' '), tab, o); err == nil {
		t.Errorf("%s: another file is taken for the same", f)
	}
}

func exportRefused(t *testing.T, f foreign.Format, tab *placement.Table, o foreign.ExportOptions, want string) {
	t.Helper()
	e, err := foreign.Export(f, tab, o)
	if err == nil || !strings.Contains(err.Error(), want) || len(e.Data) > 0 {
		t.Errorf("%s: got  %v\nwant %s\n%s", f, err, want, e.Data)
	}
}

func three() []topology.Node {
	return []topology.Node{{Addr: "10.0.0.1:11211", Weight: 1}, {Addr: "10.0.0.2:6379", Weight: 3, Label: "two"}, {Addr: "[::1]:11211", Weight: 2}}
}

func TestExportTwemproxy(t *testing.T) {
	f := foreign.Twemproxy
	export(t, f, table(t, mode(how{Mode: topology.ModeTwemproxy, HashTag: "{}", Hash: "murmur"}), three()...), foreign.ExportOptions{Lines: []string{"redis: true"}}, `
cache:
  listen: 127.0.0.1:22121
  distribution: ketama
  hash: murmur
  hash_tag: "{}"
  redis: true
  servers:
    - 10.0.0.1:11211:1
    - 10.0.0.2:6379:3 two
    - ::1:11211:2
`)
	nodes := []topology.Node{{Addr: "10.0.0.1:11211", Weight: 1}, {Addr: "unix:/b.sock", Weight: 1, Label: "/b.sock:"}, {Addr: "gone:1", Weight: 0}}
	export(t, f, table(t, mode(how{Mode: topology.ModeTwemproxy, Distribution: "modula"}), nodes...), foreign.ExportOptions{Name: "p", Lines: []string{"listen: 127.0.0.1:1"}}, `
p:
  distribution: modula
  hash: fnv1a_64
  listen: 127.0.0.1:1
  servers:
    - 10.0.0.1:11211:1
    - /b.sock:1
`)
	export(t, f, table(t, mode(how{Mode: topology.ModeGomemcache}), three()...), foreign.ExportOptions{}, `
cache:
  listen: 127.0.0.1:22121
  distribution: modula
  hash: crc32a
  servers:
    - 10.0.0.1:11211:1 s00000
    - 10.0.0.2:6379:1 s00001
    - ::1:11211:1 s00002
`)
	export(t, f, table(t, mode(how{Mode: topology.ModeSpymemcached}), three()[:2]...), foreign.ExportOptions{}, `
cache:
  listen: 127.0.0.1:22121
  distribution: ketama
  hash: md5
  servers:
    - 10.0.0.1:11211:1 10.0.0.1:11211
    - 10.0.0.2:6379:1 two
`)
	exportRefused(t, f, table(t, topology.Spec{Algorithm: topology.Ring}, three()...), foreign.ExportOptions{}, "twemproxy computes no algorithm ring; publish a mapping that it does (compat: {mode: twemproxy})")
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeKetama, Hash: "murmur3"}), three()...), foreign.ExportOptions{}, "twemproxy has no hash murmur3")
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeNpmHashring, Hash: "sha1"}), three()...), foreign.ExportOptions{}, "twemproxy has no such ring")
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeTwemproxy}), three()...), foreign.ExportOptions{Lines: []string{"hash: md5"}}, "hash: stands on line")
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeTwemproxy}), three()...), foreign.ExportOptions{Lines: []string{"nonsense: 1"}}, "nonsense: unknown directive")
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeTwemproxy}), topology.Node{Addr: "a b:1", Weight: 1}), foreign.ExportOptions{}, `"a b:1" is no host:port`)
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeTwemproxy}), topology.Node{Addr: "a:1"}), foreign.ExportOptions{}, `no node owns anything`)
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeTwemproxy}), three()...), foreign.ExportOptions{Name: "a:b"}, `name "a:b"`)
}

func TestExportNginx(t *testing.T) {
	f := foreign.Nginx
	nodes := []topology.Node{{Addr: "10.0.0.1:80", Label: "10.0.0.1", Weight: 1}, {Addr: "10.0.0.2:8080", Weight: 3, State: topology.StateDown}, {Addr: "unix:/a", Weight: 1}}
	want := `
upstream cache {
    hash $request_uri consistent;
    keepalive 8;
    server 10.0.0.1;
    server 10.0.0.2:8080 weight=3 down;
    server unix:/a;
}
`
	o := foreign.ExportOptions{Lines: []string{"keepalive 8;"}}
	export(t, f, table(t, mode(how{Mode: topology.ModeNginx}), nodes...), o, want)
	nodes[1].State = topology.StateActive
	want = strings.ReplaceAll(want, " down", "")
	export(t, f, table(t, mode(how{Mode: topology.ModeMemcachedFast, Points: 160}), nodes...), o, want)
	export(t, f, table(t, mode(how{Mode: topology.ModeMemcachedFast}), nodes...), foreign.ExportOptions{Name: "u", Key: "$arg_k"}, `
upstream u {
    hash $arg_k;
    server 10.0.0.1:80;
    server 10.0.0.2:8080 weight=3;
    server unix:/a;
}
`)
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeMemcachedFast, Points: 150}), nodes...), o, "nginx has 160 points a unit of weight, this mapping 150")
	nodes[0].Label = "first"
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeNginx}), nodes...), o, `node "n1" hashes as "first" and lives at 10.0.0.1:80, but nginx hashes the address itself`)
	o.Lines = []string{"least_conn;"}
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeNginx}), nodes[1:]...), o, "least_conn: sends keys by load")
	o.Lines = []string{"} upstream x {"}
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeNginx}), nodes[1:]...), o, "want one line without braces")
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeNginx}), nodes[1:]...), foreign.ExportOptions{Key: "$a; x"}, `key "$a; x"`)
}

func TestExportHAProxy(t *testing.T) {
	f := foreign.HAProxy
	nodes := []topology.Node{{ID: "web(1)", Addr: "10.0.0.1:80", Weight: 4}, {ID: "b", Addr: "10.0.0.2:80", Weight: 6, Label: "9"}, {ID: "c", Addr: "unix:/c", Weight: 0},
		{ID: "d", Addr: "10.0.0.4:80", Weight: 1, State: topology.StateDown}, {ID: "e", Addr: "10.0.0.5:80", Weight: 1, State: topology.StateJoining}}
	spec := mode(how{Mode: topology.ModeHAProxy, Distribution: "consistent", Input: "uri", Depth: 2})
	spec.BoundedLoad = 1.25
	export(t, f, table(t, spec, nodes...), foreign.ExportOptions{Lines: []string{"option httpchk"}}, `
backend cache
    balance uri depth 2
    hash-type consistent sdbm avalanche
    hash-balance-factor 125
    option httpchk
    server web_1_ 10.0.0.1:80 id 1 weight 4
    server b 10.0.0.2:80 id 9 weight 6
    server d 10.0.0.4:80 id 4 weight 1 disabled
    server c unix@/c id 3 weight 0
`)
	export(t, f, table(t, mode(how{Mode: topology.ModeHAProxy, Hash: "wt6"}), nodes[1:2]...), foreign.ExportOptions{}, `
backend cache
    balance hdr(x-key)
    hash-type map-based wt6
    server b 10.0.0.2:80 id 9 weight 6
`, "requests are balanced by the header x-key; say what the key is in yours")
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeHAProxy}), nodes...), foreign.ExportOptions{Lines: []string{"cookie X insert"}}, "cookie: sends requests by a cookie")
	exportRefused(t, f, table(t, spec, nodes...), foreign.ExportOptions{Key: "hdr(host)"}, "the mapping says that the URI is hashed")
	exportRefused(t, f, table(t, mode(how{Mode: topology.ModeNginx}), nodes...), foreign.ExportOptions{}, "haproxy computes no mode nginx")
}

func TestExportEnvoy(t *testing.T) {
	tab := table(t, mode(how{Mode: topology.ModeEnvoyRing, MinRingSize: 64}), topology.Node{Addr: "10.0.0.1:80", Weight: 2, Label: "k1", Zone: "r/z"}, topology.Node{Addr: "[::1]:80", Weight: 1, Zone: "r/z", State: topology.StateDown})
	export(t, foreign.EnvoyEDS, tab, foreign.ExportOptions{}, `
{
  "resources": [
    {
      "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
      "cluster_name": "cache",
      "endpoints": [
        {
          "locality": {
            "region": "r",
            "zone": "z"
          },
          "lb_endpoints": [
            {
              "endpoint": {
                "address": {
                  "socket_address": {
                    "address": "10.0.0.1",
                    "port_value": 80
                  }
                }
              },
              "metadata": {
                "filter_metadata": {
                  "envoy.lb": {
                    "hash_key": "k1"
                  }
                }
              },
              "load_balancing_weight": 2
            },
            {
              "endpoint": {
                "address": {
                  "socket_address": {
                    "address": "::1",
                    "port_value": 80
                  }
                }
              },
              "health_status": "UNHEALTHY",
              "metadata": {
                "filter_metadata": {
                  "envoy.lb": {
                    "hash_key": "[::1]:80"
                  }
                }
              },
              "load_balancing_weight": 1
            }
          ]
        }
      ]
    }
  ]
}
`, "the cluster must have lb_policy: RING_HASH with ring_hash_lb_config: {hash_function: XX_HASH, minimum_ring_size: 64, maximum_ring_size: 8388608}")
	sockets := mode(how{Mode: topology.ModeEnvoyMaglev, TableSize: 251})
	made, err := foreign.Export(foreign.EnvoyEDS, table(t, sockets, topology.Node{Addr: "/run/a.sock", Weight: 1}, topology.Node{Addr: "unix:/run/b.sock", Weight: 2}), foreign.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reads(t, foreign.EnvoyEDS, string(made.Data), opt{Cluster: "cache", Compat: sockets.Compat}, sockets.Compat,
		node{ID: "_run_a.sock", Addr: "/run/a.sock", Label: "/run/a.sock", Weight: 1}, node{ID: "_run_b.sock", Addr: "/run/b.sock", Label: "unix:/run/b.sock", Weight: 2})
	exportRefused(t, foreign.EnvoyEDS, table(t, mode(how{Mode: topology.ModeKetama}), three()...), foreign.ExportOptions{}, "envoy computes no mode ketama; publish a mapping that it does (compat: {mode: envoy-ring})")
}

func TestExportNodesOnly(t *testing.T) {
	spec := topology.Spec{Algorithm: topology.Ring, Replicas: 2}
	export(t, foreign.Mcrouter, table(t, spec, three()...), foreign.ExportOptions{}, `
{
  "pools": {
    "cache": {
      "servers": [
        "10.0.0.1:11211",
        "10.0.0.2:6379",
        "[::1]:11211"
      ]
    }
  },
  "route": "PoolRoute|cache"
}
`, "nodes only: mcrouter maps keys by a hash of its own (ch3) over the list, so keys go elsewhere than here", "mcrouter knows one owner a key; the other 1 replicas are left out")
}

func TestExportRedisCLI(t *testing.T) {
	head := "# gives each master its slots, in a cluster whose nodes have met and hold none (redis-server 7.0 and later)\n"
	nodes := []topology.Node{{Addr: "10.0.0.1:7000", Weight: 1, Slots: "0-99 16000-16383"}, {Addr: "10.0.0.2:7000", Weight: 1, Slots: "100-15999"}}
	export(t, foreign.RedisCLI, table(t, mode(how{Mode: topology.ModeRedisSlots}), nodes...), foreign.ExportOptions{}, head+
		"redis-cli -h 10.0.0.1 -p 7000 CLUSTER ADDSLOTSRANGE 0 99 16000 16383\nredis-cli -h 10.0.0.2 -p 7000 CLUSTER ADDSLOTSRANGE 100 15999\n")
	native := topology.Spec{Algorithm: topology.Slots, KeyHash: topology.CRC16, HashTag: "{}"}
	e, err := foreign.Export(foreign.RedisCLI, table(t, native, topology.Node{Addr: "10.0.0.1:7000", Weight: 1}), foreign.ExportOptions{})
	if want := head + "redis-cli -h 10.0.0.1 -p 7000 CLUSTER ADDSLOTSRANGE 0 16383\n"; err != nil || string(e.Data) != want {
		t.Errorf("%v\n%s", err, e.Data)
	}
	native.KeyHash, native.HashTag = topology.XXH64, ""
	exportRefused(t, foreign.RedisCLI, table(t, native, three()...), foreign.ExportOptions{}, "a Redis Cluster computes no algorithm slots")
	exportRefused(t, foreign.RedisCLI, table(t, native, three()...), foreign.ExportOptions{}, "take algorithm: slots with key_hash: crc16")
}

func TestExportUnknown(t *testing.T) {
	exportRefused(t, foreign.Thanos, table(t, topology.Spec{Algorithm: topology.Ring}, three()...), foreign.ExportOptions{}, `format "thanos" cannot be written; known are envoy-eds, haproxy, mcrouter`)
	if _, err := foreign.Export(foreign.Nginx, table(t, topology.Spec{Algorithm: topology.Ring}, three()...), foreign.ExportOptions{}); !errors.Is(err, foreign.ErrCannot) {
		t.Errorf("%v is not ErrCannot", err)
	}
}

// drawNodes draws a list of servers with weights, states and, if labels, names.
func drawNodes(t *rapid.T, most uint32, labels func(i int) string) []topology.Node {
	nodes := make([]topology.Node, rapid.IntRange(1, 7).Draw(t, "n"))
	for i, at := range rapid.Permutation(slices.Collect(func(yield func(int) bool) {
		for i := range nodes {
			if !yield(i) {
				return
			}
		}
	})).Draw(t, "positions") {
		n := topology.Node{ID: fmt.Sprintf("n%d", i), Addr: fmt.Sprintf("10.0.%d.%d:%d", i, rapid.IntRange(1, 9).Draw(t, "host"), rapid.SampledFrom([]int{80, 11211, 6379}).Draw(t, "port")),
			Weight: rapid.Uint32Range(0, most).Draw(t, "weight"), Position: uint32(at + 1), State: rapid.SampledFrom([]topology.State{topology.StateActive, topology.StateActive, topology.StateActive, topology.StateDown, topology.StateDraining}).Draw(t, "state")}
		if i == 0 {
			n.Weight, n.State = n.Weight+1, topology.StateActive
		}
		if rapid.Bool().Draw(t, "labelled") {
			n.Label = labels(i)
		}
		nodes[i] = n
	}
	return nodes
}

// Export followed by Parse gives the same mapping, whatever the list. Export
// compares by itself, so this compares owners of keys with other means.
func TestExportLaw(t *testing.T) {
	name := func(i int) string { return fmt.Sprintf("name-%d", i) }
	none := func(int) string { return "" }
	id := func(i int) string { return fmt.Sprint(1 + (i+3)%7) } // in the way of others' numbers
	for _, c := range []struct {
		f      foreign.Format
		spec   topology.Foreign
		most   uint32
		labels func(int) string
	}{
		{foreign.Twemproxy, how{Mode: topology.ModeTwemproxy}, 3, name},
		{foreign.Twemproxy, how{Mode: topology.ModeTwemproxy, Distribution: "modula", Hash: "crc16", HashTag: "{}"}, 5, name},
		{foreign.Twemproxy, how{Mode: topology.ModeMemcachedFast}, 5, none},
		{foreign.Nginx, how{Mode: topology.ModeNginx}, 2, none},
		{foreign.Nginx, how{Mode: topology.ModeNginxHash}, 3, none},
		{foreign.HAProxy, how{Mode: topology.ModeHAProxy}, 9, id},
		{foreign.HAProxy, how{Mode: topology.ModeHAProxy, Distribution: "consistent"}, 9, id},
		{foreign.EnvoyEDS, how{Mode: topology.ModeEnvoyRing, MinRingSize: 100}, 5, name},
		{foreign.EnvoyEDS, how{Mode: topology.ModeEnvoyMaglev, TableSize: 251}, 5, name},
	} {
		t.Run(fmt.Sprintf("%s/%s/%s", c.f, c.spec.Mode, c.spec.Distribution), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { sameAfterExport(t, c.f, mode(c.spec), drawNodes(t, c.most, c.labels)) })
		})
	}
}

func sameAfterExport(t *rapid.T, f foreign.Format, spec topology.Spec, nodes []topology.Node) {
	tab := table(t, spec, nodes...)
	e, err := foreign.Export(f, tab, foreign.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := foreign.Options{Cluster: "cache"}
	if f == foreign.EnvoyEDS {
		o.Compat = spec.Compat
	}
	r, err := foreign.Parse(f, "", e.Data, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, e.Data)
	}
	read := table(t, r.Declared.Spec, r.Declared.Nodes...)
	for i := range 200 {
		key := fmt.Sprintf("{%d}key-%d", i%17, i)
		a, errA := tab.Owner(key)
		b, errB := read.Owner(key)
		if errA != nil || errB != nil || tab.Topology().Node(a).Addr != read.Topology().Node(b).Addr {
			t.Fatalf("%q: %d %v, read again %d %v\n%s", key, a, errA, b, errB, e.Data)
		}
	}
}
