package placementtest_test

import (
	"testing"

	"github.com/shardd/shardd/placement/placementtest"
	"github.com/shardd/shardd/topology"
)

// Every live mode, in its variants, keeps the laws that it can.
func TestForeignModes(t *testing.T) {
	type foreign = topology.Foreign
	tests := []struct {
		f     foreign
		large int
	}{
		{f: foreign{Mode: topology.ModeRedisSlots}, large: 500},
		{f: foreign{Mode: topology.ModeKetama}, large: 500},
		{f: foreign{Mode: topology.ModeLibketama}, large: 500},
		{f: foreign{Mode: topology.ModeSpymemcached}, large: 500},
		{f: foreign{Mode: topology.ModeSpymemcached, Distribution: "modula"}},
		{f: foreign{Mode: topology.ModeTwemproxy, Hash: "md5"}, large: 500},
		{f: foreign{Mode: topology.ModeTwemproxy, Distribution: "modula"}},
		{f: foreign{Mode: topology.ModeNginx}, large: 500},
		{f: foreign{Mode: topology.ModeMemcachedFast, Points: 150}, large: 500},
		{f: foreign{Mode: topology.ModeMemcachedFast}, large: 1000},
		{f: foreign{Mode: topology.ModeHAProxy, Distribution: "consistent"}, large: 1000},
		{f: foreign{Mode: topology.ModeHAProxy, Distribution: "map-based"}, large: 1000},
		{f: foreign{Mode: topology.ModeLibmemcached, Distribution: "ketama_weighted"}, large: 500},
		{f: foreign{Mode: topology.ModeGoRedisRing}, large: 1000},
		{f: foreign{Mode: topology.ModeGomemcache}},
		{f: foreign{Mode: topology.ModeGroupcache}, large: 1000},
		{f: foreign{Mode: topology.ModeGoZero, Points: 2000}, large: 200},
		{f: foreign{Mode: topology.ModeJump}},
		{f: foreign{Mode: topology.ModeJump, Hash: "crc32"}, large: 1000},
		{f: foreign{Mode: topology.ModeEnvoyRing}, large: 500},
		{f: foreign{Mode: topology.ModeEnvoyMaglev, TableSize: 4099}, large: 500},
		{f: foreign{Mode: topology.ModeGRPCRing}, large: 500},
		{f: foreign{Mode: topology.ModeNpmHashring}, large: 500},
	}
	seen := map[topology.Mode]bool{}
	for _, tt := range tests {
		name := string(tt.f.Mode)
		for _, part := range []string{tt.f.Distribution, tt.f.Hash} {
			if part != "" {
				name += " " + part
			}
		}
		s := placementtest.Foreign(name, tt.f)
		s.Large = tt.large
		placementtest.Run(t, s)
		seen[tt.f.Mode] = true
	}
	for _, m := range topology.Modes() {
		if (topology.Foreign{Mode: m}).Live() && !seen[m] {
			t.Errorf("live mode %s is not run", m)
		}
	}
}
