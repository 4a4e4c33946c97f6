package live

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/shardd/shardd/internal/realserver"
	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/placement"
)

// twemproxyHashes are all that nutcracker has.
var twemproxyHashes = []string{"one_at_a_time", "md5", "crc16", "crc32", "crc32a", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "hsieh", "murmur", "jenkins"}

// nutcracker in front of memcached: all hashes under ketama and modula, weights,
// names, a hash tag, a socket.
func TestNutcracker(t *testing.T) {
	servers := realserver.ForTest(t, realserver.Memcached(), 5)
	socket := filepath.Join(t.TempDir(), "m.sock")
	realserver.RunForTest(t, "memcached", "memcached", []string{"-s", socket, "-m", "64", "-t", "1", "-u", "root"}, socket)
	text, binary := keys(t)
	all := append(text, carried(binary, inMemcached)...)
	for _, s := range servers {
		fill(t, "tcp", s.Addr, s.Addr, all)
	}
	fill(t, "unix", socket, "unix:"+socket, all)

	list := func(parameters ...string) string {
		var b strings.Builder
		for i, p := range parameters {
			fmt.Fprintf(&b, "   - %s:%s\n", servers[i].Addr, p)
		}
		return b.String()
	}
	pools := map[string]string{
		"weights":       "  distribution: ketama\n  servers:\n" + list("1", "2", "3", "10", "1"),
		"names":         "  hash: fnv1a_64\n  distribution: ketama\n  servers:\n" + list("1 zz", "1 b", "2 ccc", "1 a", "1"),
		"modula":        "  hash: crc16\n  distribution: modula\n  servers:\n" + list("1 zz", "3 b", "2 ccc", "1 a", "1"),
		"tag":           "  hash_tag: \"{}\"\n  hash: murmur\n  servers:\n" + list("1", "1", "1", "1", "1"),
		"tag_slash":     "  hash_tag: //\n  hash: md5\n  servers:\n" + list("1", "1", "1"),
		"one":           "  hash: md5\n  servers:\n" + list("7"),
		"socket":        "  hash: md5\n  servers:\n" + list("1", "1") + "   - " + socket + ":1\n",
		"socket_named":  "  hash: md5\n  servers:\n" + list("1", "1") + "   - " + socket + ":1 name\n",
		"defaults":      "  auto_eject_hosts: false\n  servers:\n" + list("1", "1", "1"),
		"modula_socket": "  hash: md5\n  distribution: modula\n  servers:\n" + list("1", "1") + "   - " + socket + ":2\n",
	}
	for _, hash := range twemproxyHashes {
		pools["ketama_"+hash] = "  hash: " + hash + "\n  distribution: ketama\n  servers:\n" + list("1", "1", "1", "1", "1")
		pools["modula_"+hash] = "  hash: " + hash + "\n  distribution: modula\n  servers:\n" + list("1", "1", "1", "1", "1")
	}
	others := exported()
	ports := realserver.FreePorts(t, len(pools)+len(others)+1)
	var conf strings.Builder
	fronts, ready := make(map[string]string), []string{}
	for name, body := range pools {
		fronts[name] = "127.0.0.1:" + strconv.Itoa(ports[len(fronts)+1])
		ready = append(ready, fronts[name])
		fmt.Fprintf(&conf, "%s:\n  listen: %s\n  timeout: 5000\n%s", name, fronts[name], body)
	}
	tables := make(map[string]*placement.Table)
	for name, mode := range others {
		fronts[name] = "127.0.0.1:" + strconv.Itoa(ports[len(fronts)+1])
		ready = append(ready, fronts[name])
		tables[name] = clusterOf(t, mode, servers)
		e, err := foreign.Export(foreign.Twemproxy, tables[name], foreign.ExportOptions{Name: name, Lines: []string{"listen: " + fronts[name], "timeout: 5000"}})
		if err != nil {
			t.Fatal(err)
		}
		conf.Write(e.Data)
	}
	file := write(t, "nutcracker.yml", conf.String())
	realserver.RunForTest(t, "nutcracker", "nutcracker", []string{"-c", file, "-a", "127.0.0.1", "-s", strconv.Itoa(ports[0])}, ready...)
	for name := range pools {
		agrees(t, name, mapping(t, file, name), all, get(t, fronts[name], all))
	}
	for name, table := range tables {
		agrees(t, name, table, all, get(t, fronts[name], all))
	}
}

// exported are mappings of clients that nutcracker computes, too, when it is set up
// as export writes it.
func exported() map[string]string {
	return map[string]string{
		"to_ketama": "{mode: ketama}", "to_ketama_crc": "{mode: ketama, hash: crc}", "to_libketama": "{mode: libketama}", "to_spymemcached": "{mode: spymemcached}",
		"to_npm": "{mode: npm-hashring}", "to_gomemcache": "{mode: gomemcache}", "to_fast": "{mode: memcached-fast}", "to_twemproxy": "{mode: twemproxy, hash: jenkins, hash_tag: \"{}\"}",
	}
}

// clusterOf is a mapping of these servers in a mode, with weights where it has some.
func clusterOf(t *testing.T, mode string, servers []*realserver.Server) *placement.Table {
	t.Helper()
	nodes := ""
	for i, s := range servers {
		nodes += fmt.Sprintf("  - {id: n%d, addr: %q, weight: %d}\n", i, s.Addr, 1+i%3)
	}
	return mapping(t, write(t, "cluster.yaml", "cluster: c\ncompat: "+mode+"\nnodes:\n"+nodes), "")
}
