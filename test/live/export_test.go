package live

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/shardd/shardd/migrate/foreign"
)

// What export writes, the software itself takes for right.
func TestExportAccepted(t *testing.T) {
	nodes := `
nodes:
  - {id: "web(1)", addr: "127.0.0.1:8001", weight: 3, zone: z1}
  - {id: b, addr: "127.0.0.2:8002", state: down}
  - {id: c, addr: "[::1]:8003", weight: 2}
  - {id: d, addr: "unix:/tmp/shardd-test.sock", weight: 0}
`
	f := func(format foreign.Format, compat string, o foreign.ExportOptions, before, after, program string, args ...string) {
		t.Run(string(format)+" "+compat, func(t *testing.T) {
			path, err := exec.LookPath(program)
			if err != nil && os.Getenv("SHARDD_REQUIRE_SERVICES") != "1" {
				t.Skipf("%s is not installed", program)
			}
			if err != nil {
				t.Fatal(err)
			}
			e, err := foreign.Export(format, mapping(t, write(t, "cluster.yaml", "cluster: web\ncompat: "+compat+nodes), ""), o)
			if err != nil {
				t.Fatal(err)
			}
			file := write(t, "conf", before+string(e.Data)+after)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "FILE", file)
			}
			out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) || err != nil && !strings.Contains(string(out), "no listener") {
				t.Errorf("%v: %s\n%s", err, out, e.Data)
			}
		})
	}
	dir := t.TempDir()
	f(foreign.Nginx, "{mode: nginx}", foreign.ExportOptions{Key: "$arg_k", Lines: []string{"keepalive 4;"}}, "error_log stderr; pid "+dir+"/p; events {} http { access_log off;\n", "}\n", "/usr/sbin/nginx", "-t", "-c", "FILE", "-e", "stderr", "-p", dir)
	f(foreign.Nginx, "{mode: nginx-ip-hash}", foreign.ExportOptions{}, "error_log stderr; pid "+dir+"/p; events {} http { access_log off;\n", "}\n", "/usr/sbin/nginx", "-t", "-c", "FILE", "-e", "stderr", "-p", dir)
	defaults := "global\n maxconn 10\ndefaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n"
	f(foreign.HAProxy, "{mode: haproxy, hash_type: consistent, input: uri, depth: 3}", foreign.ExportOptions{Lines: []string{"option httpchk GET /"}}, defaults, "", "/usr/sbin/haproxy", "-c", "-f", "FILE")
	f(foreign.HAProxy, "{mode: haproxy}", foreign.ExportOptions{Key: "url_param k"}, defaults, "", "/usr/sbin/haproxy", "-c", "-f", "FILE")
	f(foreign.Twemproxy, `{mode: twemproxy, hash: crc32a, hash_tag: "{}"}`, foreign.ExportOptions{Lines: []string{"redis: true"}}, "", "", "/usr/sbin/nutcracker", "-t", "-c", "FILE")
}
