// Package lint holds rules about the source tree as tests, so that they run
// wherever `go test` runs. It has no other contents.
package lint

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/shardd/shardd"

// floors gives the floor of every directory tree. A package may import lower
// floors and its own tree. The longest matching prefix counts.
var floors = map[string]int{
	"internal/floorbench": 0, // benchmarks only; imported by tests
	"internal/realserver": 0, // starts memcached and redis-server for tests and examples
	"internal/quota":      0, // rounding of shares; for the tables of floor 1
	"internal/nearest":    0, // rest of a preference order; for the circles of floor 1
	"internal/splitmix":   0, // integer mixing

	"topology": 0, "keyhash": 0,

	"ring": 1, "jump": 1, "rendezvous": 1, "maglev": 1, "slots": 1,
	"balance": 1, "resilience": 1, "compat": 1,

	"placement": 2, "internal/etcdkv": 2,

	"membership": 3, "sdk": 3, "loadreport": 3, "migrate": 3, "shardtest": 3,
	"internal/api": 3,

	"internal/server": 4, "internal/embedetcd": 4,
	"internal/cli": 5,
	"cmd/shardd":   6, "cmd/migrate": 6,
	"bench": 6, "examples": 6, "test": 6, "internal/lint": 6,
}

// sideways lists the imports within one floor that are meant: who -> whom.
var sideways = map[string][]string{
	"compat":       {"ring", "jump"},               // foreign points and lists on the same lookups
	"sdk":          {"internal/api", "loadreport"}, // the HTTP source speaks the server's wire types; adapters read load reports
	"shardtest":    {"sdk"},                        // it is a source
	"internal/api": {"membership"},                 // sentinels of the store travel over HTTP
}

// trees that may import a foreign module path prefix; everyone else may not.
var allowed = map[string][]string{
	"go.etcd.io/etcd/client": {"internal/etcdkv", "membership/etcdstore", "sdk/etcdsource", "sdk/owner/etcdlease", "internal/embedetcd"},
	"go.etcd.io/etcd/api":    {"internal/etcdkv", "membership/etcdstore", "sdk/etcdsource", "sdk/owner/etcdlease", "internal/embedetcd"},
	"go.etcd.io/etcd/server": {"internal/embedetcd"},
	"github.com/prometheus/": {"internal/server", "internal/cli", "sdk/sdkprom"},
	"go.opentelemetry.io/":   {"internal/server", "sdk/sdkotel"},

	"github.com/redis/rueidis":     {"sdk/rueidis", "bench", "examples", "test"},
	"github.com/golang/groupcache": {"sdk/groupcache", "bench", "examples", "test"},
	"google.golang.org/grpc":       {"sdk/grpclb", "sdk/owner/ownergrpc", "loadreport/grpcreport", "examples", "test", "internal/etcdkv"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list output: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// tree returns the entry of floors that rel belongs to.
func tree(rel string) (string, bool) {
	for dir := rel; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, ok := floors[dir]; ok {
			return dir, true
		}
	}
	return "", false
}

func TestFloors(t *testing.T) {
	for _, p := range listPackages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module+"/")
		from, ok := tree(rel)
		if !ok {
			t.Errorf("%s is on no floor; add it to the table in this test and to ARCHITECTURE.md", rel)
			continue
		}
		for _, imp := range p.Imports {
			checkImport(t, rel, from, imp)
		}
	}
}

// TestFloorsStand: what floors and sideways name is there and is needed. Allowed
// is a list of permissions, which nobody has to use.
func TestFloorsStand(t *testing.T) {
	imports := map[string][]string{} // of each tree
	for _, p := range listPackages(t) {
		from, _ := tree(strings.TrimPrefix(p.ImportPath, module+"/"))
		imports[from] = append(imports[from], "")
		for _, imp := range p.Imports {
			if to, ours := strings.CutPrefix(imp, module+"/"); ours {
				into, _ := tree(to)
				imports[from] = append(imports[from], into)
			}
		}
	}
	for dir := range floors {
		if imports[dir] == nil {
			t.Errorf("floors: there is no package under %s", dir)
		}
	}
	for from, list := range sideways {
		for _, into := range list {
			if !slices.Contains(imports[from], into) {
				t.Errorf("sideways: %s does not import %s", from, into)
			}
		}
	}
}

func checkImport(t *testing.T, rel, from, imp string) {
	t.Helper()
	to, ours := strings.CutPrefix(imp, module+"/")
	if !ours {
		checkForeign(t, rel, imp)
		return
	}
	into, ok := tree(to)
	if !ok || into == from || floors[into] < floors[from] || slices.Contains(sideways[from], into) {
		return
	}
	t.Errorf("%s (floor %d) imports %s (floor %d); a package imports lower floors and its own tree", rel, floors[from], to, floors[into])
}

func checkForeign(t *testing.T, rel, imp string) {
	t.Helper()
	for prefix, trees := range allowed {
		if !strings.HasPrefix(imp, prefix) {
			continue
		}
		ok := slices.ContainsFunc(trees, func(dir string) bool { return rel == dir || strings.HasPrefix(rel, dir+"/") })
		if !ok {
			t.Errorf("%s imports %s; only %v may", rel, imp, trees)
		}
	}
}
