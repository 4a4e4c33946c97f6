package foreign_test

import (
	"testing"

	"github.com/shardd/shardd/migrate/foreign"
)

func TestDetect(t *testing.T) {
	f := func(want foreign.Format, data string) {
		t.Helper()
		if got, ok := foreign.Detect([]byte(data)); got != want || ok != (want != "") {
			t.Errorf("%s\ngot %q %v, want %q", data, got, ok, want)
		}
	}
	f(foreign.Twemproxy, "alpha:\n  listen: 127.0.0.1:1\n  servers:\n  - 10.0.0.1:1:1\n")
	f(foreign.Twemproxy, "alpha:\n  hash: md5\n  servers: []\n")
	f(foreign.Twemproxy, "cluster: # a pool\n  listen: 127.0.0.1:1\n  servers:\n  - 10.0.0.1:1:1\n")
	f(foreign.Nginx, "http { upstream u { hash k; } }")
	f(foreign.Nginx, "upstream u { server a:1; }")
	f(foreign.HAProxy, "global\nbackend b\n  server a h:1\n")
	f(foreign.HAProxy, "listen l\n  server-template a 3 h:1\n")
	f(foreign.Redis, "\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 127.0.0.1:1@2 master - 0 0 1 connected\n")
	f(foreign.Memcached, "# servers\n10.0.0.1:11211 600\n10.0.0.2:11211\n")
	f(foreign.GoRedisRing, "Addrs:\n  a: h:1\n")
	f(foreign.GoRedisRing, `{"addrs": {"a": "h:1"}}`)
	f(foreign.Thanos, `[{"hashring": "a", "endpoints": []}]`)
	f(foreign.EnvoyEDS, `{"cluster_name": "c", "endpoints": []}`)
	f(foreign.EnvoyEDS, `{"resources": [{"clusterName": "c", "endpoints": []}]}`)
	for _, none := range []string{"", "hello", "cluster: c\nalgorithm: ring\nnodes:\n  - {id: a, addr: 'h:1'}\n", `{"cluster": "c", "algorithm": "ring", "nodes": [{"id": "a"}]}`,
		"cluster: c\ncompat: {mode: nginx}\nnodes: [{id: a}]\n", "{", "[]", "[1]", "a:\n  servers: [b]\n", "upstream", "http { server { } }", "backend b\n", "h:1 x\n", "\xff"} {
		f("", none)
	}
}
