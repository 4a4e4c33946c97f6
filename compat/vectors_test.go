package compat

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shardd/shardd/topology"
)

// The files in testdata are what the software named in them answered.

func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// keys are the two lists of keys that recordings run parallel to.
type keys struct{ text, bin []string }

func readKeys(t testing.TB) keys {
	t.Helper()
	var text struct {
		Keys []string `json:"keys"`
	}
	var bin struct {
		Hex []string `json:"keys_hex"`
	}
	readJSON(t, "keys_text", &text)
	readJSON(t, "keys_bin", &bin)
	k := keys{text: text.Keys}
	for _, h := range bin.Hex {
		k.bin = append(k.bin, unhex(t, h))
	}
	if len(k.text) != 867 || len(k.bin) != 58 {
		t.Fatalf("%d and %d keys", len(k.text), len(k.bin))
	}
	return k
}

func unhex(t testing.TB, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// picks are answers of the foreign software, indices into its list.
type picks struct {
	Picks []int `json:"picks"`
	Bin   []int `json:"picks_bin"`
}

// list makes nodes of addresses. Ids are given so that their order is another one
// than the list's: a mapping that went by it would fail.
func list(addrs []string, weights []uint32) []topology.Node {
	nodes := make([]topology.Node, len(addrs))
	for i, a := range addrs {
		nodes[i] = topology.Node{ID: fmt.Sprintf("n%03d", (i*7+3)%1009), Addr: a, Weight: 1, Position: uint32(i + 1)}
		if weights != nil {
			nodes[i].Weight = weights[i]
		}
	}
	return nodes
}

// replay counts what was compared, so that an empty recording is no success.
type replay struct {
	*testing.T
	keys
	n int
}

func newReplay(t *testing.T) *replay { return &replay{T: t, keys: readKeys(t)} }

func (r *replay) mapping(name string, f topology.Foreign, nodes []topology.Node) *Mapping {
	r.Helper()
	spec := topology.Spec{Compat: f}.Normal()
	if err := spec.Validate(); err != nil {
		r.Fatalf("%s: %v", name, err)
	}
	if err := topology.ValidateNodes(spec, nodes); err != nil {
		r.Fatalf("%s: %v", name, err)
	}
	m, err := New(f, nodes)
	if err != nil {
		r.Fatalf("%s: %v", name, err)
	}
	return m
}

// check compares every recorded answer, and that another order of the argument
// changes nothing.
func (r *replay) check(name string, f topology.Foreign, nodes []topology.Node, p picks) {
	r.Helper()
	m := r.mapping(name, f, nodes)
	back := make([]topology.Node, len(nodes))
	for i, n := range nodes {
		back[len(nodes)-1-i] = n
	}
	reversed := r.mapping(name, f, back)
	if len(p.Picks) == 0 {
		r.Errorf("%s: no picks", name)
	}
	wrong := 0
	one := func(key string, want int) {
		r.n++
		got := m.LocateKey(key)
		if other := len(nodes) - 1 - reversed.LocateKey(key); other != got {
			r.Errorf("%s: key %q: the order of the argument counts: %d, %d", name, key, got, other)
		}
		if got != want {
			if wrong++; wrong < 4 {
				r.Errorf("%s: key %q is on %d, want %d", name, key, got, want)
			}
		}
	}
	for i, want := range p.Picks {
		one(r.text[i], want)
	}
	for i, want := range p.Bin {
		one(r.bin[i], want)
	}
	if wrong > 3 {
		r.Errorf("%s: %d keys in all", name, wrong)
	}
}

func (r *replay) done(want int) {
	r.Helper()
	if r.n != want {
		r.Errorf("%d answers compared, want %d", r.n, want)
	}
}

func TestTwemproxy(t *testing.T) {
	var v struct {
		Cases []struct {
			picks
			Name    string
			Options struct {
				Distribution, Hash string
				HashTag            string `json:"hash_tag"`
			}
			Servers []string
		}
	}
	readJSON(t, "twemproxy", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		var nodes []topology.Node
		for i, s := range c.Servers { // host:port:weight [name]
			addr, name, _ := strings.Cut(s, " ")
			at := strings.LastIndexByte(addr, ':')
			var weight uint32
			_, _ = fmt.Sscan(addr[at+1:], &weight)
			n := list([]string{addr[:at]}, []uint32{weight})[0]
			n.ID, n.Label, n.Position = fmt.Sprintf("n%d", 99-i), name, uint32(i+1)
			nodes = append(nodes, n)
		}
		r.check(c.Name, topology.Foreign{Mode: topology.ModeTwemproxy, Distribution: c.Options.Distribution, Hash: c.Options.Hash, HashTag: c.Options.HashTag}, nodes, c.picks)
	}
	r.done(19 * 925)
}

func TestLibmemcached(t *testing.T) {
	var v struct {
		Cases []struct {
			picks
			Name, Options string
			Nodes         []struct {
				Host   string
				Port   int
				Weight uint32
			}
		}
	}
	readJSON(t, "libmemcached", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		f := topology.Foreign{Mode: topology.ModeLibmemcached}
		for _, o := range strings.Fields(c.Options) {
			switch name, value, _ := strings.Cut(o, "="); name {
			case "dist":
				f.Distribution = strings.TrimPrefix(value, "behavior_")
			case "hash":
				f.Hash = value
			case "sort":
				f.SortHosts = true
			}
		}
		var addrs []string
		var weights []uint32
		for _, n := range c.Nodes {
			addrs, weights = append(addrs, fmt.Sprintf("%s:%d", n.Host, n.Port)), append(weights, n.Weight)
		}
		r.check(c.Name, f, list(addrs, weights), c.picks)
		if f.Distribution == "ketama_weighted" { // the same under the name of those who use it
			r.check(c.Name, topology.Foreign{Mode: topology.ModeKetama, Hash: f.Hash}, list(addrs, weights), c.picks)
		}
	}
	r.done((20 + 6) * 925)
}

func TestLibketama(t *testing.T) {
	var v struct {
		Cases []struct {
			picks
			Name   string
			Points int
			Nodes  []struct {
				Name   string
				Weight uint32
			}
		}
	}
	readJSON(t, "rj_ketama", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		var addrs []string
		var weights []uint32
		for _, n := range c.Nodes {
			addrs, weights = append(addrs, n.Name), append(weights, n.Weight)
		}
		f := topology.Foreign{Mode: topology.ModeLibketama}
		r.check(c.Name, f, list(addrs, weights), c.picks)
		if m := r.mapping(c.Name, f, list(addrs, weights)); m.Ring.NumPoints() != c.Points {
			t.Errorf("%s: %d points, want %d", c.Name, m.Ring.NumPoints(), c.Points)
		}
	}
	r.done(4 * 925)
}

func TestMemcachedClients(t *testing.T) {
	var v struct {
		Cases []struct {
			picks
			Name, Lib string
			Nodes     []string
			Weights   []uint32
			Points    uint32 `json:"ketama_points"`
		}
	}
	readJSON(t, "memcached_clients", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		f := topology.Foreign{Mode: topology.ModeSpymemcached}
		switch {
		case c.Lib == "Cache::Memcached::Fast":
			f = topology.Foreign{Mode: topology.ModeMemcachedFast, Points: c.Points}
		case strings.HasPrefix(c.Name, "modula"):
			f.Distribution = "modula"
		}
		r.check(c.Name, f, list(c.Nodes, c.Weights), c.picks)
	}
	r.done(4 * 867)
}

func TestNpmHashring(t *testing.T) {
	var v struct {
		Cases []struct {
			picks
			Name, Algorithm string
			Options         map[string]uint32
			Nodes           []string
			Weights         []uint32
			Points          int
		}
	}
	readJSON(t, "npm_hashring", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		f := topology.Foreign{Mode: topology.ModeNpmHashring, Hash: c.Algorithm, DefaultPort: c.Options["default port"]}
		r.check(c.Name, f, list(c.Nodes, c.Weights), c.picks)
		if m := r.mapping(c.Name, f, list(c.Nodes, c.Weights)); m.Ring.NumPoints() != c.Points {
			t.Errorf("%s: %d points, want %d", c.Name, m.Ring.NumPoints(), c.Points)
		}
	}
	r.done(4 * 867)
}

func TestNginx(t *testing.T) {
	var v struct {
		IPs   []string
		Cases []struct {
			picks
			Name, Options string
			IPPicks       []int `json:"picks_ip"`
			Servers       []struct {
				Server, Flags string
				Weight        uint32
			}
		}
	}
	readJSON(t, "nginx", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		var addrs []string
		var weights []uint32
		for _, s := range c.Servers {
			addrs, weights = append(addrs, s.Server), append(weights, s.Weight)
		}
		nodes := list(addrs, weights)
		for i, s := range c.Servers {
			if s.Flags == "down" {
				nodes[i].State = topology.StateDown
			}
		}
		mode := map[string]topology.Mode{"hash <key> consistent": topology.ModeNginx, "hash <key>": topology.ModeNginxHash, "ip_hash": topology.ModeNginxIPHash}[c.Options]
		if c.IPPicks == nil {
			r.check(c.Name, topology.Foreign{Mode: mode}, nodes, c.picks)
			continue
		}
		ips := &replay{T: t, keys: keys{text: v.IPs}}
		ips.check(c.Name, topology.Foreign{Mode: mode}, nodes, picks{Picks: c.IPPicks})
		ips.done(240)
	}
	r.done(5 * 925)
}

func TestHAProxy(t *testing.T) {
	var v struct {
		Cases []struct {
			picks
			Name, Balance string
			HashType      string `json:"hash_type"`
			Servers       []struct{ ID, Weight uint32 }
			Requests      []string
			Are           string `json:"requests_are"`
			RequestPicks  []int  `json:"picks_requests"`
		}
	}
	readJSON(t, "haproxy", &v)
	r := newReplay(t)
	requests := 0
	for _, c := range v.Cases {
		f := topology.Foreign{Mode: topology.ModeHAProxy}
		for i, word := range strings.Fields(c.HashType) {
			switch {
			case i == 0:
				f.Distribution = word
			case word == "avalanche":
				f.Avalanche = true
			default:
				f.Hash = word
			}
		}
		if rest, ok := strings.CutPrefix(c.Balance, "uri"); ok {
			f.Input = "uri"
			_, _ = fmt.Sscanf(rest, " depth %d", &f.Depth)
		}
		var nodes []topology.Node
		for i, s := range c.Servers {
			n := list([]string{"same:1"}, []uint32{s.Weight})[0] // addresses do not count
			n.ID, n.Position = fmt.Sprintf("n%d", 99-i), uint32(i+1)
			if s.ID != uint32(i+1) {
				n.Label = fmt.Sprint(s.ID)
			}
			nodes = append(nodes, n)
		}
		if c.RequestPicks == nil {
			r.check(c.Name, f, nodes, c.picks)
			continue
		}
		texts := c.Requests
		if strings.HasSuffix(c.Are, "hex") {
			for i, h := range texts {
				texts[i] = unhex(t, h)
			}
		}
		req := &replay{T: t, keys: keys{text: texts}}
		req.check(c.Name, f, nodes, picks{Picks: c.RequestPicks})
		requests += req.n
	}
	r.done(14 * 925)
	if requests != 900 {
		t.Errorf("%d requests compared", requests)
	}
}
