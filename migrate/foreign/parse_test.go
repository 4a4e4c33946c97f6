package foreign_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/topology"
)

type (
	node = topology.Node
	how  = topology.Foreign
	opt  = foreign.Options
)

func TestTwemproxy(t *testing.T) {
	f := foreign.Twemproxy
	alpha := `alpha:
  listen: 127.0.0.1:22121
  hash: murmur
  distribution: ketama
  hash_tag: "{}"
  auto_eject_hosts: true
  redis: true
  server_retry_timeout: 2000
  server_failure_limit: 1
  servers:
   - 127.0.0.1:6379:1
   - 10.0.0.2:11211:3 cache two
`
	refused(t, f, alpha, `file:12: servers: "10.0.0.2:11211:3 cache two": weight "3 cache" is no whole number`)
	alpha = strings.ReplaceAll(alpha, "cache two", "cache-two")
	reads(t, f, alpha, opt{}, how{Mode: topology.ModeTwemproxy, Hash: "murmur", HashTag: "{}"},
		node{ID: "127.0.0.1:6379", Addr: "127.0.0.1:6379"}, node{ID: "cache-two", Addr: "10.0.0.2:11211", Label: "cache-two", Weight: 3})
	beta := "beta:\n  distribution: modula\n  servers: [\"/tmp/a.sock:2\", \"::1:11211:1\", \"h:00080:1\", \"h:011211:1\"]\n"
	reads(t, f, alpha+beta, opt{Pool: "beta"}, how{Mode: topology.ModeTwemproxy, Distribution: "modula"},
		node{ID: "unix:_tmp_a.sock", Addr: "unix:/tmp/a.sock", Label: "/tmp/a.sock:", Weight: 2}, node{ID: "[::1]:11211", Addr: "[::1]:11211"},
		node{ID: "h:00080", Addr: "h:00080", Label: "h:00080"}, node{ID: "h:011211", Addr: "h:011211", Label: "h"})
	refused(t, f, alpha+beta, "file: 2 of pools: alpha, beta; name one as the pool")
	refused(t, f, strings.ReplaceAll(alpha, "ketama", "random"), "file:4: distribution: random maps no key to a node")
	refused(t, f, strings.ReplaceAll(alpha, "murmur", "sha1"), `file:3: hash: unknown "sha1"`)
	refused(t, f, strings.ReplaceAll(alpha, `"{}"`, "abc"), `file:5: hash_tag: "abc": twemproxy takes two characters`)
	refused(t, f, alpha+"  wieght: 3\n", "file:13: wieght: unknown directive")
	refused(t, f, alpha+"  redis: true\n", "file:13: redis: stands on line 7 already")
	refused(t, f, "a: {servers: ['h:1:0']}", `weight "0" is no whole number from 1`)
	refused(t, f, "a: {servers: ['h:1']}", `"h:1": want host:port:weight`)
	refused(t, f, "a: {servers: ['h:99999:1']}", `"h:99999:1": want host:port:weight`)
	refused(t, f, "a: {servers: ['h:1:1 a', 'g:1:1 a']}", `nodes[1].label: node "a-2" hashes as "a"`)
	refused(t, f, "a: {servers: []}", `no servers in "a"`)
	refused(t, f, "a: &x {servers: []}", "anchors, aliases")
	refused(t, f, "- a", "want a map of pools, not a list")
}

func TestNginx(t *testing.T) {
	f := foreign.Nginx
	conf := `# a whole nginx.conf
user www-data;
events { worker_connections 768; }
http {
    include /etc/nginx/mime.types;
    log_format main '$remote_addr "$request" {json}';
    map $http_upgrade $c { default upgrade; '' close; }
    upstream backend {   # trailing
        zone backend 64k;
        hash "${scheme}$request_uri" consistent;
        server 10.0.0.1:8080 weight=5 max_fails=3 fail_timeout=10s;
        server 10.0.0.2;
        server [::1]:90 down;
        server 'unix:/tmp/b c.sock';
        keepalive 16;
    }
    upstream plain { server 10.0.0.1; }
    upstream ip { ip_hash; server a.example:80; }
    upstream h { hash $uri; server 10.0.0.1:1 max_conns=3; }
    server { listen 80; location ~ ^/a{2} { proxy_pass http://backend; }
      location /l { content_by_lua_block { local s = "}" -- }
         if x then y = {1} end } }
    }
}
`
	conf = strings.ReplaceAll(conf, "~ ^/a{2}", `~ "^/a{2}"`)
	reads(t, f, conf, opt{Pool: "backend"}, how{Mode: topology.ModeNginx},
		node{ID: "10.0.0.1:8080", Addr: "10.0.0.1:8080", Weight: 5}, node{ID: "10.0.0.2", Addr: "10.0.0.2:80", Label: "10.0.0.2"},
		node{ID: "[::1]:90", Addr: "[::1]:90", State: topology.StateDown, Weight: 1}, node{ID: "unix:_tmp_b_c.sock", Addr: "unix:/tmp/b c.sock"})
	reads(t, f, conf, opt{Pool: "ip"}, how{Mode: topology.ModeNginxIPHash}, node{ID: "a.example:80", Addr: "a.example:80"})
	reads(t, f, conf, opt{Pool: "h"}, how{Mode: topology.ModeNginxHash}, node{ID: "10.0.0.1:1", Addr: "10.0.0.1:1"})
	reads(t, f, "upstream u{hash k consistent;server a:1;}", opt{}, how{Mode: topology.ModeNginx}, node{ID: "a:1", Addr: "a:1"})
	refused(t, f, conf, "4 of upstream blocks: backend, plain, ip, h")
	up := func(s string) string { return "upstream u {\n" + s + "\n}\n" }
	refused(t, f, up("server a:1;"), "file:1: upstream u: no hash or ip_hash")
	refused(t, f, up("least_conn; server a:1;"), "file:2: least_conn: sends keys by load")
	refused(t, f, up("random two; server a:1;"), "file:2: random: sends keys by chance")
	refused(t, f, up("hash $k consistent;\ninclude servers.conf;"), "file:3: include: is not followed; give the file as nginx -T prints it")
	refused(t, f, "http {\n include conf.d/*.conf; }", "file:2: include: no upstream blocks in the file; includes are not followed")
	refused(t, f, up("hash $k consistent;\nsticky cookie x;"), "file:3: sticky: sends requests by a cookie")
	refused(t, f, up("hash $k consistent;\nconsistent_hash $k;"), "file:3: consistent_hash: unknown directive")
	refused(t, f, up("hash $k consistent;\nserver a:1 backup;"), "file:3: server backup: nginx takes no backup")
	refused(t, f, up("hash $k consistent;\nserver a:1 route=x;"), "file:3: server route: unknown parameter")
	refused(t, f, up("hash $k consistent;\nserver a:1 weight=0;"), `file:3: server weight: "0" is no whole number from 1`)
	refused(t, f, up("hash $k consistent;\nserver a:1;\nserver a:1;"), `file:4: nodes[1].label: node "a:1-2" hashes as "a:1"`)
	refused(t, f, up("hash $k;ip_hash;server a:1;"), "has a method already")
	refused(t, f, "upstream u {", "the file ends within a block")
	refused(t, f, "upstream u { hash 'x", "a quote that is not closed")
	refused(t, f, `upstream u { hash "x"y; }`, `unexpected 'y' behind a quote`)
	refused(t, f, "}", "'}' without '{'")
	refused(t, f, "a", `file:1: a: the file ends before ';' or '{'`)
}

func TestHAProxy(t *testing.T) {
	f := foreign.HAProxy
	conf := `global
    log "${LOG}" local0
defaults base
    balance roundrobin
    default-server inter 2s weight 3
    option redispatch
defaults from base
    mode http
    timeout server 10s # comment
    hash-type consistent djb2 avalanche
frontend f
    bind "$ADDR:80"
    default_backend b
backend b
    balance url_param key check_post
    option httpchk GET /
    http-request set-header x-a "a b\" c" if { path_beg /x }
    server a 10.0.0.1:80 check cookie x source 0.0.0.0 interface lo weight 7
    server b\ c ipv4@10.0.0.2:80 disabled # gone
    server zero unix@/tmp/z.sock weight 0
    server spare 10.0.0.9:80 backup
    default-server weight 10
    server-template t 2-3 svc.example:80 check resolvers dns
listen l
    bind :81
    balance uri whole depth 2
    hash-type consistent
    server x 10.0.0.1:1 id 2
    server y 10.0.0.2:1
    server z 10.0.0.3:1 id 7
    server q 10.0.0.4:1
    server r 10.0.0.5:1 id 2147483647
`
	reads(t, f, conf, opt{Pool: "b"}, how{Mode: topology.ModeHAProxy, Distribution: "consistent", Hash: "djb2", Avalanche: true},
		node{ID: "a", Addr: "10.0.0.1:80", Weight: 7}, node{ID: "b_c", Addr: "10.0.0.2:80", Weight: 3, State: topology.StateDown},
		node{ID: "zero", Addr: "unix:/tmp/z.sock"}, node{ID: "t2", Addr: "svc.example:80", Weight: 10, Position: 5}, node{ID: "t3", Addr: "svc.example:80", Weight: 10, Position: 6})
	reads(t, f, conf, opt{Pool: "l"}, how{Mode: topology.ModeHAProxy, Distribution: "consistent", Hash: "sdbm", Avalanche: true, Input: "uri-whole", Depth: 2},
		node{ID: "x", Addr: "10.0.0.1:1", Label: "2", Weight: 3}, node{ID: "y", Addr: "10.0.0.2:1", Label: "3", Weight: 3},
		node{ID: "z", Addr: "10.0.0.3:1", Label: "7", Weight: 3}, node{ID: "q", Addr: "10.0.0.4:1", Label: "5", Weight: 3},
		node{ID: "r", Addr: "10.0.0.5:1", Label: "2147483647", Weight: 3})
	reads(t, f, "backend b\n balance hdr(host)\n hash-balance-factor 0\n server a :1", opt{}, how{Mode: topology.ModeHAProxy}, node{ID: "a", Addr: ":1"})
	be := func(s string) string { return "backend b\n balance hash req.hdr(k)\n server a 10.0.0.1:1\n" + s + "\n" }
	for line, want := range map[string]string{
		"balance leastconn":                                   "balance: leastconn gives no key a server",
		"balance source":                                      "balance: source hashes the client's address",
		"balance uri len 4":                                   "balance: uri len is not read",
		"balance hdr(host) use_domain_only":                   "balance: use_domain_only hashes a part",
		"balance":                                             "balance: want a method",
		"hash-type consistent md5":                            `hash-type: unknown "md5"; want one of sdbm`,
		"hash-type avalanche":                                 `hash-type: unknown "avalanche"; want one of map-based, consistent`,
		"hash-type consistent sdbm none":                      `hash-type: unknown modifier "none"`,
		"hash-balance-factor 100":                             `hash-balance-factor: "100": want 0, or more than 100`,
		"cookie SRV insert":                                   "cookie: sends requests by a cookie",
		"stick on src":                                        "stick: sends requests by a table",
		"use-server a if { src 10.0.0.1 }":                    "use-server: sends some requests",
		"dispatch 10.0.0.1:1":                                 "dispatch: sends all requests",
		"option transparent":                                  "option: transparent sends requests",
		"ballance uri":                                        "ballance: unknown directive",
		"server c 10.0.0.3:1 wieght 3":                        `server: unknown parameter "wieght"`,
		"server c 10.0.0.3:1 weight":                          `server: "" is no whole number`,
		"server c 10.0.0.3:1 weight 257":                      `server: "257" is no whole number from 0 to 256`,
		"server c 10.0.0.3:1 hash-key addr":                   "server: hash-key addr places servers",
		"server c 10.0.0.3:1 id 0":                            `server: id "0"`,
		"server c 10.0.0.3:1 id 9\n server d 10.0.0.4:1 id 9": "file:5: server: id 9 is taken",
		`server c "$HOST:1"`:                                  "server: depends on the environment",
		`server c 'x`:                                         "server: a quote that is not closed",
		".if defined(X)\n server c 10.0.0.3:1\n.endif":        "backend: stands under .if",
		"server-template t 0 h:1":                             `"0" is no count or range`,
		"load-server-state-from-file global":                  "stand in another file",
	} {
		refused(t, f, be(line), want)
		refused(t, f, be(line), "file:")
	}
	refused(t, f, "backend b\n server a h:1", "file:1: backend b: no balance")
	refused(t, f, "backend b from x\n server a h:1", `no defaults section "x" before this line`)
	refused(t, f, "frontend f\n bind :1", "no backends in the file")
}

func TestRedis(t *testing.T) {
	f := foreign.Redis
	a, b, c := strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)
	nodes := a + " 127.0.0.1:7001@17001,host-1,shard-id=x master - 0 1 1 connected 5461-10922 [77->-" + b + "]\n" +
		b + " 127.0.0.1:7002@17002 myself,master - 0 0 2 connected 0-5460\n" +
		c + " ::1:7003@17003 master,fail - 0 0 3 disconnected 10923 10924-16383\n" +
		strings.Repeat("d", 40) + " 127.0.0.1:7004@17004 slave " + a + " 0 0 1 connected\nvars currentEpoch 3 lastVoteEpoch 0\n"
	reads(t, f, nodes, opt{Cluster: "r"}, how{Mode: topology.ModeRedisSlots},
		node{ID: "127.0.0.1:7002", Addr: "127.0.0.1:7002", Label: b, Slots: "0-5460", Weight: 1},
		node{ID: "127.0.0.1:7001", Addr: "127.0.0.1:7001", Label: a, Slots: "5461-10922", Weight: 1},
		node{ID: "[::1]:7003", Addr: "[::1]:7003", Label: c, Slots: "10923 10924-16383", Weight: 1, State: topology.StateDown})
	r := parse(t, f, nodes, opt{})
	if want := []string{"slot 77->-" + b + " is being moved; finish that (redis-cli --cluster fix) before the mapping is taken over", "1 replicas are left out: the nodes of the mapping are the masters"}; strings.Join(r.Notes, "|") != strings.Join(want, "|") {
		t.Errorf("notes %q", r.Notes)
	}
	r = parse(t, f, strings.Repeat("e", 40)+" :0@0 master,noaddr - 0 0 3 disconnected\n"+nodes, opt{})
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, strings.Repeat("e", 40)+" is a master without slots") }) {
		t.Errorf("notes %q", r.Notes)
	}
	refused(t, f, strings.ReplaceAll(nodes, "10923 ", ""), "slot 10923 belongs to no master")
	refused(t, f, strings.ReplaceAll(nodes, "10923 ", "5000 "), `slot 5000 belongs to node "127.0.0.1:7002" already`)
	refused(t, f, strings.ReplaceAll(nodes, "16383", "16384"), `"10924-16384" is no range of slots`)
	refused(t, f, "hello\n", `file:1: "hello" is no line of nodes.conf`)
}

func TestMemcached(t *testing.T) {
	f := foreign.Memcached
	reads(t, f, "# servers\n10.0.0.1:11211 600\n10.0.0.2 \t 300\n\n[::1]:11212 # last\n/tmp/m.sock 2", opt{}, how{Mode: topology.ModeKetama},
		node{ID: "10.0.0.1:11211", Addr: "10.0.0.1:11211", Weight: 600}, node{ID: "10.0.0.2:11211", Addr: "10.0.0.2:11211", Weight: 300},
		node{ID: "[::1]:11212", Addr: "[::1]:11212"}, node{ID: "_tmp_m.sock", Addr: "/tmp/m.sock", Weight: 2})
	reads(t, f, "a:1", opt{Compat: how{Mode: topology.ModeGoZero}}, how{Mode: topology.ModeGoZero}, node{ID: "a:1", Addr: "a:1", Weight: 100})
	refused(t, f, "a:1 0", `file:1: weight "0" is no whole number from 1`)
	refused(t, f, "a:1 1 1", `file:1: "a:1 1 1": want host:port and a weight`)
	refused(t, f, "a:b", `file:1: "a:b": want host:port`)
	refused(t, f, "", "no servers in the file")
}

func TestGoRedis(t *testing.T) {
	f := foreign.GoRedisRing
	reads(t, f, "Addrs:\n  shard1: 'localhost:7000'\n  shard/2: localhost:7001\nPoolSize: 10\nheartbeat_frequency: 1s\n", opt{}, how{Mode: topology.ModeGoRedisRing},
		node{ID: "shard1", Addr: "localhost:7000", Label: "shard1"}, node{ID: "shard_2", Addr: "localhost:7001", Label: "shard/2"})
	refused(t, f, "addrs: {a: 'b:1'}\nNewConsistentHash: x", "file:2: newconsistenthash: a hash of the program's own")
	refused(t, f, "addrs: {a: 'b:1'}\npoolsise: 1", "file:2: poolsise: no field of RingOptions")
	refused(t, f, "addrs: [a]", "file:1: addrs: want a map of shard names")
	refused(t, f, "addrs: {a: x, a: y}", "file:1: a: stands on line 1 already")
}

func TestThanos(t *testing.T) {
	f := foreign.Thanos
	file := `[{"hashring":"a","tenants":["x"],"endpoints":["h1:1","h2:1"]},
 {"hashring":"b","algorithm":"ketama","endpoints":[{"address":"h1:1","az":"z1"},{"address":"h2:1"}]}]`
	r := parse(t, f, file, opt{Pool: "b"})
	if !r.NodesOnly || r.Declared.Spec.Algorithm != topology.Ring || len(r.Declared.Nodes) != 2 || r.Declared.Nodes[0] != (node{ID: "h1:1", Addr: "h1:1", Zone: "z1", Weight: 1}) {
		t.Errorf("%+v", r)
	}
	refused(t, f, file, "2 of hashrings: a, b")
	refused(t, f, `[{"endpoints":["h"],"x":1}]`, "file:1: x: unknown field of a hashring")
	refused(t, f, "[{\"endpoints\":[\n{\"add\":\"h\"}]}]", "file:2: add: unknown field of an endpoint")
	refused(t, f, "[{\"endpoints\":[{}]}]", "an endpoint without an address")
	refused(t, f, `{}`, "want a list of hashrings, not a map")
	refused(t, f, `[`, "not JSON")
	refused(t, f, `[] []`, "text after the JSON value")
}

func TestEnvoy(t *testing.T) {
	f := foreign.EnvoyEDS
	file := `{"version_info": "1", "resources": [{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
 "clusterName": "c", "endpoints": [
  {"locality": {"region": "r", "zone": "z"}, "lbEndpoints": [
    {"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}, "hostname": "h"}, "loadBalancingWeight": 3,
     "metadata": {"filterMetadata": {"envoy.lb": {"hash_key": "key-1"}}}},
    {"endpoint": {"address": {"socket_address": {"address": "::1", "port_value": 80}}}, "health_status": "UNHEALTHY"}]},
  {"priority": 1, "lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "10.0.0.3", "port_value": 80}}}}]}]}]}`
	reads(t, f, file, opt{}, how{Mode: topology.ModeEnvoyRing},
		node{ID: "10.0.0.1:80", Addr: "10.0.0.1:80", Label: "key-1", Weight: 3, Zone: "r/z"}, node{ID: "[::1]:80", Addr: "[::1]:80", State: topology.StateDown, Weight: 1, Zone: "r/z"})
	reads(t, f, file, opt{Compat: how{Mode: topology.ModeEnvoyMaglev, TableSize: 251}}, how{Mode: topology.ModeEnvoyMaglev, TableSize: 251},
		node{ID: "10.0.0.1:80", Addr: "10.0.0.1:80", Label: "key-1", Weight: 3, Zone: "r/z"}, node{ID: "[::1]:80", Addr: "[::1]:80", State: topology.StateDown, Weight: 1, Zone: "r/z"})
	one := func(endpoint string) string {
		return `{"cluster_name":"c","endpoints":[{"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"h","port_value":1}}}` + endpoint + `}]}]}`
	}
	refused(t, f, one(`,"x":1`), "file:1: x: unknown field")
	refused(t, f, one(`,"health_status":"BAD"`), `health_status: unknown health "BAD"`)
	refused(t, f, one(`,"load_balancing_weight":0`), `load_balancing_weight: "0" is no whole number from 1`)
	refused(t, f, `{"cluster_name":"c","endpoints":[{"load_balancing_weight":1,"lb_endpoints":[{"endpoint":{"address":{"pipe":{"path":"/a"}}}}]},{"lb_endpoints":[{"endpoint":{"address":{"pipe":{"path":"/b"}}}}]}]}`, "weights of localities share out")
	refused(t, f, `{"cluster_name":"c","endpoints":[{"leds_cluster_locality_config":{}}]}`, "endpoints that stand elsewhere")
	refused(t, f, `{"cluster_name":"c","named_endpoints":{}}`, "endpoints by name")
	if _, err := foreign.Parse(f, "", []byte(one("")), opt{Compat: how{Mode: topology.ModeNginx}}); err == nil || !strings.Contains(err.Error(), "mode nginx is none of Envoy's") {
		t.Error(err)
	}
}

func TestParseRefuses(t *testing.T) {
	if _, err := foreign.Parse("apache", "", nil, opt{}); err == nil || !strings.Contains(err.Error(), `format "apache" cannot be read; known are envoy-eds, go-redis-ring, haproxy`) {
		t.Error(err)
	}
	if _, err := foreign.Parse(foreign.Nginx, "f", nil, opt{Compat: how{Mode: topology.ModeNginx}}); err == nil || !strings.Contains(err.Error(), "f: a nginx file says itself how keys map") {
		t.Error(err)
	}
	if _, err := foreign.Parse(foreign.Nginx, "f", make([]byte, foreign.MaxSize+1), opt{}); err == nil {
		t.Error("a file that is too large was read")
	}
}
