package foreign_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/topology/clusterfile"
)

// fuzz wants every input to be refused, or to give a cluster that is valid and
// that a cluster file can say.
func fuzz(f *testing.F, format foreign.Format, seeds ...string) {
	for _, s := range seeds {
		f.Add(s, "")
	}
	f.Fuzz(func(t *testing.T, data, pool string) {
		_, _ = foreign.Detect([]byte(data))
		r, err := foreign.Parse(format, "f", []byte(data), foreign.Options{Pool: pool})
		if err != nil {
			return
		}
		if err := r.Declared.Validate(); err != nil {
			t.Fatalf("accepted and not valid: %v", err)
		}
		again, err := clusterfile.Parse("f", clusterfile.Format(r.Declared))
		if diff := cmp.Diff(r.Declared, again); err != nil || diff != "" {
			t.Fatalf("as a cluster file: %v\n%s", err, diff)
		}
	})
}

func FuzzTwemproxy(f *testing.F) {
	fuzz(f, foreign.Twemproxy, "a:\n  listen: x\n  hash: md5\n  hash_tag: \"{}\"\n  servers:\n   - 10.0.0.1:11211:1 n\n   - /a b:2\n", "a: {servers: ['::1:11211:1']}", "a: {distribution: modula, servers: [\"h:01:1\"]}\nb: 1")
}

func FuzzNginx(f *testing.F) {
	fuzz(f, foreign.Nginx, "http { upstream u { hash \"$a b\" consistent; server 10.0.0.1 weight=3 down; server unix:/a; } }", "upstream u{ip_hash;server [::1]:1;}", "# c\nupstream u { hash k; server 'a\\'b':1; include x; }", "x_by_lua_block { -- }\n '}' } upstream u {}", "a ${b} \\; {}")
}

func FuzzHAProxy(f *testing.F) {
	fuzz(f, foreign.HAProxy, "defaults\n hash-type consistent\nbackend b\n balance uri depth 3\n server a 10.0.0.1:80 weight 3 id 7\n server-template t 2-5 h:1 disabled\n", "listen l\n balance hdr(x)\n hash-type map-based djb2 avalanche\n server a\\ b ipv4@1.1.1.1:1 backup # x\n server 'c' \"d\":1\n", ".if\nbackend b\n", "backend b from d\n", "backend \\x41\n balance hash x\n server a 1 source 1 interface 2 weight 0\n server b 1\n")
}

func FuzzRedis(f *testing.F) {
	fuzz(f, foreign.Redis, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 127.0.0.1:7001@17001 myself,master - 0 1 1 connected 0-16382 16383 [7-<-b]\nvars currentEpoch 1\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa :0@0 master,noaddr - 0 1 1 connected 0-16383\n")
}

func FuzzMemcached(f *testing.F) {
	fuzz(f, foreign.Memcached, "10.0.0.1:11211 3\nhost # c\n[::1]:1\n/tmp/a 2\n", "::1\n")
}

func FuzzGoRedis(f *testing.F) {
	fuzz(f, foreign.GoRedisRing, "Addrs:\n  a: h:1\n  'b/c': h:2\nPool_Size: 3\n", `{"addrs":{"a":"b"}}`)
}

func FuzzThanos(f *testing.F) {
	fuzz(f, foreign.Thanos, `[{"hashring":"a","endpoints":["h:1",{"address":"h:2","az":"z"}],"tenants":[]}]`)
}

func FuzzEnvoy(f *testing.F) {
	fuzz(f, foreign.EnvoyEDS, `{"cluster_name":"c","endpoints":[{"locality":{"zone":"z"},"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"h","port_value":1}}},"load_balancing_weight":2,"metadata":{"filter_metadata":{"envoy.lb":{"hash_key":"k"}}}}]}]}`,
		`{"resources":[{"clusterName":"c","endpoints":[{"priority":1},{"lbEndpoints":[{"endpoint":{"address":{"pipe":{"path":"/a"}}},"healthStatus":3}]}]}]}`)
}
