package live

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardd/shardd/internal/realserver"
)

// nginx: hash consistent and hash, with weights, servers that are down, a socket,
// an address without a port, and ip_hash.
func TestNginx(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "b.sock")
	a := backends(t, 6, socket)
	front := realserver.FreePorts(t, 1)[0]
	server := func(i int, parameters string) string { return fmt.Sprintf("        server %s %s;\n", a[i], parameters) }
	plain := server(0, "") + server(1, "") + server(2, "") + server(3, "") + server(4, "")
	weighted := server(0, "") + server(1, "weight=2") + server(2, "weight=3 max_fails=0") + server(3, "weight=5")
	down := server(0, "weight=3") + server(1, "down") + server(2, "weight=2") + "        server 127.0.0.9 weight=4 down; # no port\n" + server(4, "")
	upstreams := map[string]string{
		"ring":          "hash $http_x_key consistent;\n" + plain,
		"ring_weighted": "hash $http_x_key consistent;\n" + weighted,
		"ring_down":     "hash $http_x_key consistent;\n" + down,
		"ring_socket":   "hash \"$http_x_key\" consistent;\n" + weighted + server(6, "weight=2"),
		"ring_one":      "hash $http_x_key consistent;\n" + server(5, ""),
		"hash":          "hash $http_x_key;\n" + plain,
		"hash_weighted": "hash $http_x_key;\n" + weighted,
		"hash_down":     "hash $http_x_key;\n" + down,
		"ip":            "ip_hash;\n" + plain,
		"ip_weighted":   "ip_hash;\n" + weighted,
		"ip_down":       "ip_hash;\n" + down,
	}
	var conf, places strings.Builder
	for name, body := range upstreams {
		fmt.Fprintf(&conf, "    upstream %s {\n        %s        keepalive 4;\n    }\n", name, body)
		fmt.Fprintf(&places, "        location = /%s { proxy_pass http://%s; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_next_upstream off; }\n", name, name)
	}
	file := write(t, "nginx.conf", fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path %[1]s/c; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
    set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
%[2]s    server {
        listen 127.0.0.1:%[3]d;
%[4]s    }
}
`, dir, conf.String(), front, places.String()))
	realserver.RunForTest(t, "nginx", "nginx-light", []string{"-p", dir, "-c", file, "-e", "stderr"}, fmt.Sprintf("127.0.0.1:%d", front))

	text, binary := keys(t)
	all := append(text, carried(binary, inHeader)...)
	var ips []string
	for i := range 500 {
		ips = append(ips, fmt.Sprintf("%d.%d.%d.%d", 1+i*7%223, i*31%256, i*101%256, i*13%256))
	}
	for name := range upstreams {
		list, header := all, "X-Key"
		if strings.HasPrefix(name, "ip") {
			list, header = ips, "X-Real-IP"
		}
		answers := ask(t, fmt.Sprintf("127.0.0.1:%d", front), list, func(key string) string {
			return fmt.Sprintf("GET /%s HTTP/1.1\r\nHost: x\r\n%s: %s\r\n\r\n", name, header, key)
		})
		agrees(t, name, mapping(t, file, name), list, answers)
	}
}
