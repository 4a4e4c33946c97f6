package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardd/shardd/internal/realserver"
)

// HAProxy: both hash types, all functions, avalanche, weights that have a common
// divisor, weight 0, disabled servers, ids, inherited settings, names that decide
// nothing, and the parts of a URI.
func TestHAProxy(t *testing.T) {
	a := backends(t, 6)
	front := realserver.FreePorts(t, 1)[0]
	servers := func(parameters ...string) string {
		var b strings.Builder
		for i, p := range parameters {
			fmt.Fprintf(&b, "    server %s%d %s %s\n", strings.Repeat("x", 1+i*7%4), i, a[i], p)
		}
		return b.String()
	}
	plain := servers("", "", "", "", "")
	bodies := map[string]string{
		"inherited":    plain,
		"map_weights":  "    hash-type map-based djb2\n" + servers("weight 4", "weight 6", "weight 10"),
		"map_zero":     "    hash-type map-based\n" + servers("weight 3", "weight 0", "weight 9", "weight 6"),
		"map_down":     "    hash-type map-based sdbm\n" + servers("weight 3", "disabled weight 2", "weight 9", "weight 6 disabled", "weight 7"),
		"ring_weights": "    hash-type consistent djb2 avalanche\n" + servers("weight 4", "weight 6", "weight 10", "weight 1", "weight 256"),
		"ring_zero":    "    hash-type consistent crc32\n" + servers("weight 3", "weight 0", "weight 9", "disabled", "weight 7"),
		"ring_ids":     "    hash-type consistent\n" + servers("id 2", "", "id 900", "", "id 4"),
		"ring_ids2":    "    hash-type consistent\n" + servers("", "", "id 2", "", "id 1", ""),
		"ring_backup":  "    hash-type consistent\n" + servers("", "backup", "", "id 77", ""),
		"ring_default": "    hash-type consistent wt6\n    default-server weight 5 inter 3s\n" + servers("", "weight 2") + "    default-server weight 9\n" + strings.ReplaceAll(servers("", "", "", "weight 0", ""), "server x", "server y"),
		"one":          "    hash-type consistent\n" + servers("", "disabled"),
		"uri":          "    balance uri\n" + plain,
		"uri_whole":    "    balance uri whole\n    hash-type consistent\n" + plain,
		"uri_depth":    "    balance uri depth 2\n" + plain,
	}
	for _, method := range []string{"map-based", "consistent"} {
		for _, function := range []string{"sdbm", "djb2", "wt6", "crc32"} {
			bodies[method+"_"+function] = fmt.Sprintf("    hash-type %s %s\n", method, function) + plain
			bodies[method+"_"+function+"_avalanche"] = fmt.Sprintf("    hash-type %s %s avalanche\n", method, function) + plain
		}
	}
	var conf strings.Builder
	fmt.Fprintf(&conf, `global
    maxconn 200
    nbthread 1
defaults
    mode http
    balance hash req.fhdr(x-key) # for all
    timeout connect 5s
    timeout client 30s
    timeout server "30s"
frontend in
    bind 127.0.0.1:%d
    use_backend %%[req.hdr(x-backend)]
`, front)
	for name, body := range bodies {
		fmt.Fprintf(&conf, "backend %s\n%s", name, body)
	}
	file := write(t, "haproxy.cfg", conf.String())
	realserver.RunForTest(t, "haproxy", "haproxy", []string{"-db", "-f", file}, fmt.Sprintf("127.0.0.1:%d", front))

	text, binary := keys(t)
	all := append(text, carried(binary, inHeader)...)
	var paths []string
	for i, k := range carried(text, func(c byte) bool {
		return c == '/' || c == '.' || c == '-' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
	}) {
		paths = append(paths, "/"+strings.TrimPrefix(k, "/"), fmt.Sprintf("/a%d/%s?x=%d", i%50, strings.TrimPrefix(k, "/"), i))
	}
	for name := range bodies {
		list := all
		if strings.HasPrefix(name, "uri") {
			list = paths
		}
		answers := ask(t, fmt.Sprintf("127.0.0.1:%d", front), list, func(key string) string {
			target := "/"
			if strings.HasPrefix(name, "uri") {
				target = key
			}
			return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: x\r\nX-Key: %s\r\nX-Backend: %s\r\n\r\n", target, key, name)
		})
		agrees(t, name, mapping(t, file, name), list, answers)
	}
}
