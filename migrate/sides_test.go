package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/topology"
)

const (
	twemproxyFile = "alpha:\n  listen: 127.0.0.1:22121\n  hash: md5\n  distribution: ketama\n  servers:\n   - 10.0.0.1:11211:1\n   - 10.0.0.2:11211:1 b\n   - 10.0.0.3:11211:2 a\n"
	ketamaFile    = "cluster: cache\ncompat: {mode: twemproxy, hash: md5}\nnodes:\n  - {id: a, addr: \"10.0.0.1:11211\"}\n  - {id: b, addr: \"10.0.0.2:11211\", label: b}\n  - {id: c, addr: \"10.0.0.3:11211\", label: a, weight: 2}\n"
	ringFile      = "cluster: cache\nalgorithm: ring\nnodes:\n  - {id: a, addr: \"10.0.0.1:11211\"}\n  - {id: b, addr: \"10.0.0.2:11211\"}\n  - {id: c, addr: \"10.0.0.3:11211\", weight: 2}\n"
)

// sides loads two files under their names.
func sides(t *testing.T, l Loader, from, to string) (*Plan, error) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string]string{"from": from, "to": to} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, b, err := l.Sides(t.Context(), filepath.Join(dir, "from"), filepath.Join(dir, "to"))
	if err != nil {
		return nil, err
	}
	return New(a, b, 0)
}

// Another system's nodes are those of the other side at the same address, so that
// taking the mapping over moves nothing, whatever nodes are called.
func TestSidesAdopt(t *testing.T) {
	for _, pair := range [][2]string{{twemproxyFile, ketamaFile}, {ketamaFile, twemproxyFile}, {twemproxyFile, twemproxyFile}} {
		p, err := sides(t, Loader{}, pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if p.Report.Ratio != 0 || p.Report.Minimum != 0 {
			t.Errorf("moves %v, minimum %v\n%s%s", p.Report.Ratio, p.Report.Minimum, pair[0], pair[1])
		}
	}
	var notes []string
	p, err := sides(t, Loader{Note: func(s string) { notes = append(notes, s) }}, twemproxyFile, ringFile)
	if err != nil {
		t.Fatal(err)
	}
	if p.Report.Ratio < 0.3 || p.Report.Minimum != 0 || p.Report.Remapped != p.Report.Ratio {
		t.Errorf("%+v", p.Report.Summary)
	}
	if !slices.Contains(notes, "3 of 3 nodes are taken for those at the same address on the other side") {
		t.Errorf("notes %q", notes)
	}
	if len(p.Report.Nodes) != 3 || p.Report.Nodes[0].ID != "a" {
		t.Errorf("nodes %+v", p.Report.Nodes)
	}
}

func TestSidesRefuse(t *testing.T) {
	f := func(l Loader, from, to, want string) {
		t.Helper()
		_, err := sides(t, l, from, to)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrFile) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	f(Loader{}, `[{"hashring":"a","endpoints":["h:1"]}]`, ringFile, "a thanos file gives nodes but no mapping")
	f(Loader{}, twemproxyFile+"beta:\n  servers: []\n", ringFile, "2 of pools: alpha, beta; name one")
	f(Loader{To: Import{Pool: "gamma"}}, ringFile, twemproxyFile, `--to: `)
	f(Loader{From: Import{Pool: "x"}}, ringFile, ringFile, "the format is not recognised; name it, one of envoy-eds")
	f(Loader{From: Import{Format: foreign.Nginx}}, twemproxyFile, ringFile, "the file ends before ';' or '{'")
	if _, _, err := (Loader{From: Import{Pool: "x"}}).Sides(t.Context(), "1.2", "1.3"); err == nil || !strings.Contains(err.Error(), "has no format, pool or mapping of another") {
		t.Error(err)
	}
	if _, _, err := (Loader{}).Sides(t.Context(), "redis://h:1", "x"); err == nil || !strings.Contains(err.Error(), "nothing here reads it") {
		t.Error(err)
	}
}

func TestSidesRemote(t *testing.T) {
	l := Loader{Remote: func(context.Context, string) (foreign.Result, error) {
		return foreign.RedisCluster([]foreign.RedisMaster{{ID: "x", Addr: "10.0.0.1:11211", Slots: []foreign.SlotRange{{First: 0, Last: topology.RedisSlots - 1}}}}, foreign.Options{})
	}}
	from, err := l.Source(t.Context(), "redis://u:secret@10.0.0.1:11211")
	if err != nil || from.Table.Owners() != 1 || from.Name != "redis://u:xxxxx@10.0.0.1:11211" {
		t.Errorf("%+v, %v", from, err)
	}
	for _, ref := range []string{"redis://u:secret@h:1", "redis://u:secret@h:\x01"} {
		if _, err := (Loader{}).Source(t.Context(), ref); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

// A name that the other side gives to another address is no reason to mix two
// nodes up.
func TestAdoptNames(t *testing.T) {
	d := topology.Declared{Spec: topology.Spec{Compat: topology.Foreign{Mode: topology.ModeGoRedisRing}}.Normal(),
		Nodes: []topology.Node{{ID: "a", Addr: "h2:1"}, {ID: "b", Addr: "h1:1"}, {ID: "c", Addr: "h9:1"}}}
	Loader{}.adopt(&d, "x", []topology.Node{{ID: "a", Addr: "h1:1"}, {ID: "z", Addr: "h3:1"}})
	want := []topology.Node{{ID: "a-2", Addr: "h2:1", Label: "a"}, {ID: "a", Addr: "h1:1", Label: "b"}, {ID: "c", Addr: "h9:1"}}
	if !slices.Equal(d.Nodes, want) || d.Cluster != "x" {
		t.Errorf("%+v", d)
	}
}
