package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/topology"
)

// bigFile is a file of n servers.
func bigFile(f foreign.Format, n int) string {
	var b strings.Builder
	line := func(head, format, tail string) string {
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, format, i/250, i%250)
		}
		return b.String() + tail
	}
	switch f {
	case foreign.Twemproxy:
		return line("a:\n  servers:\n", "   - 10.0.%d.%d:11211:1\n", "")
	case foreign.Nginx:
		return line("upstream u {\n hash $k consistent;\n", " server 10.0.%d.%d:80 weight=2;\n", "}\n")
	case foreign.HAProxy:
		return line("backend b\n balance uri\n", " server s%d-%d 10.0.0.1:80 weight 3 check\n", "")
	case foreign.EnvoyEDS:
		s := line(`{"cluster_name":"c","endpoints":[{"lb_endpoints":[`, "\n"+`{"endpoint":{"address":{"socket_address":{"address":"10.0.%d.%d","port_value":80}}}},`, "")
		return strings.TrimSuffix(s, ",") + "]}]}"
	}
	return line("", "10.0.%d.%d:11211 1\n", "")
}

func BenchmarkParse(b *testing.B) {
	for _, f := range []foreign.Format{foreign.Twemproxy, foreign.Nginx, foreign.HAProxy, foreign.EnvoyEDS, foreign.Memcached} {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/N=%d", f, n), func(b *testing.B) {
				data := []byte(bigFile(f, n))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := foreign.Parse(f, "", data, foreign.Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/server")
			})
		}
	}
}

func BenchmarkExport(b *testing.B) {
	for f, m := range map[foreign.Format]topology.Mode{foreign.Twemproxy: topology.ModeTwemproxy, foreign.Nginx: topology.ModeNginx, foreign.HAProxy: topology.ModeHAProxy, foreign.EnvoyEDS: topology.ModeEnvoyRing} {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/N=%d", f, n), func(b *testing.B) {
				nodes := make([]topology.Node, n)
				for i := range nodes {
					nodes[i] = topology.Node{Addr: fmt.Sprintf("10.0.%d.%d:80", i/250, i%250), Weight: 1, Zone: "z"}
				}
				tab := table(b, mode(topology.Foreign{Mode: m}), nodes...)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := foreign.Export(f, tab, foreign.ExportOptions{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/server")
			})
		}
	}
}
