package compat

import (
	"fmt"
	"testing"

	"github.com/shardd/shardd/topology"
)

// goLibs are the Go libraries by module path.
var goLibs = map[string]topology.Mode{
	"github.com/stathat/consistent": topology.ModeStathat, "github.com/serialx/hashring": topology.ModeSerialx, "github.com/lafikl/consistent": topology.ModeLafikl,
	"github.com/buraksezer/consistent": topology.ModeBuraksezer, "github.com/zeromicro/go-zero": topology.ModeGoZero, "github.com/golang/groupcache": topology.ModeGroupcache,
	"github.com/serialx/hashring@2018": topology.ModeSerialx2018, "github.com/dgryski/go-rendezvous": topology.ModeDgryski,
	"github.com/redis/go-redis/v9": topology.ModeGoRedisRing, "github.com/kkdai/maglev": topology.ModeKkdaiMaglev, "github.com/lithammer/go-jump-consistent-hash": topology.ModeJump,
	"github.com/dgryski/go-jump": topology.ModeJump, "github.com/tysonmote/rendezvous": topology.ModeTysonmote,
}

func TestGoLibraries(t *testing.T) {
	r := newReplay(t)
	for _, file := range []string{"golibs_ring", "golibs_other"} {
		var v struct {
			Cases []struct {
				picks
				Lib, Name, Options string
				Nodes              []string
				Weights            []uint32
			}
		}
		readJSON(t, file, &v)
		for _, c := range v.Cases {
			f := topology.Foreign{Mode: goLibs[c.Lib]}
			_, _ = fmt.Sscanf(c.Options, "M=%d", &f.TableSize)
			_, _ = fmt.Sscanf(c.Options, "xxhash64, partitions %d", &f.Partitions)
			if f.Mode == topology.ModeJump && c.Options != "Hash(xxhash64(key), n)" {
				f.Hash = c.Options
			}
			nodes := list(c.Nodes, c.Weights)
			for i := range nodes {
				if c.Weights == nil {
					nodes[i].Weight = f.DefaultWeight()
				}
				if f.Mode == topology.ModeGoRedisRing { // shards have a name and an address
					nodes[i].Label, nodes[i].Addr = nodes[i].Addr, "10.0.0.1:6379"
				}
			}
			r.check(c.Lib+" "+c.Name, f, nodes, c.picks)
		}
	}
	r.done(22 * 925)
}

func TestGRPCRing(t *testing.T) {
	var v struct {
		Cases []struct {
			picks
			Name    string
			Nodes   []string
			Weights []uint32
			Min     uint32   `json:"min_ring_size"`
			Max     uint32   `json:"max_ring_size"`
			Size    int      `json:"ring_size"`
			Points  []int    `json:"points_per_node"`
			Head    []string `json:"ring_head"`
		}
	}
	readJSON(t, "grpc_ringhash", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		f := topology.Foreign{Mode: topology.ModeGRPCRing, MinRingSize: c.Min, MaxRingSize: c.Max}
		nodes := list(c.Nodes, c.Weights)
		r.check(c.Name, f, nodes, c.picks)
		ring := r.mapping(c.Name, f, nodes).Ring
		counts := make([]int, len(nodes))
		for i := range ring.NumPoints() {
			place, owner := ring.Point(i)
			counts[owner]++
			if got := fmt.Sprintf("%d %s", place, c.Nodes[owner]); i < len(c.Head) && got != c.Head[i] {
				t.Errorf("%s: point %d is %s, want %s", c.Name, i, got, c.Head[i])
			}
		}
		if ring.NumPoints() != c.Size || fmt.Sprint(counts) != fmt.Sprint(c.Points) {
			t.Errorf("%s: %d points, %v a node; want %d, %v", c.Name, ring.NumPoints(), counts, c.Size, c.Points)
		}
	}
	r.done(3 * 867)
}

func TestCilium(t *testing.T) {
	var v struct {
		Cases []struct {
			Name, Seed string
			M          uint32
			Nodes      []string
			Weights    []uint32
			Table      []int
		}
	}
	readJSON(t, "cilium_maglev", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		m := r.mapping(c.Name, topology.Foreign{Mode: topology.ModeCilium, TableSize: c.M, Seed: c.Seed}, list(c.Nodes, c.Weights))
		for i, want := range c.Table {
			if r.n++; m.Modulo.Entry(i) != want {
				t.Fatalf("%s: entry %d is %d, want %d", c.Name, i, m.Modulo.Entry(i), want)
			}
		}
	}
	r.done(1021 + 4093 + 2039 + 251)
}

func TestCaddyAndTraefik(t *testing.T) {
	var v struct {
		Cases []struct {
			picks
			Name      string
			Upstreams []string
			Nodes     []string
			Weights   []uint32
		}
	}
	r := newReplay(t)
	readJSON(t, "caddy", &v)
	for _, c := range v.Cases {
		r.check(c.Name, topology.Foreign{Mode: topology.ModeCaddy}, list(c.Upstreams, nil), c.picks)
	}
	v.Cases = nil
	readJSON(t, "traefik_hrw", &v)
	for _, c := range v.Cases {
		r.check(c.Name, topology.Foreign{Mode: topology.ModeTraefik}, list(c.Nodes, c.Weights), c.picks)
	}
	r.done(5 * 867)
}
