package compat

import (
	"strings"
	"testing"

	"github.com/shardd/shardd/topology"
)

// weightCases are recordings with weights, weight 0 and servers that are down.
type weightCases struct {
	Cases []struct {
		picks
		Name     string
		HashType string `json:"hash_type"`
		Options  string
		Servers  []string
		Weights  []uint32
		Down     []int
		IDs      []*string
	}
}

func TestHAProxyWeights(t *testing.T) {
	var v weightCases
	readJSON(t, "haproxy_weights", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		words := strings.Fields(c.HashType)
		f := topology.Foreign{Mode: topology.ModeHAProxy, Distribution: words[0], Hash: words[1], Avalanche: len(words) > 2}
		nodes := list(make([]string, len(c.Weights)), c.Weights)
		for _, i := range c.Down {
			nodes[i].State = topology.StateDown
		}
		for i, id := range c.IDs {
			if id != nil {
				nodes[i].Label = *id
			}
		}
		r.check(c.Name, f, nodes, c.picks)
	}
	r.done(7 * 867)
}

func TestNginxWeights(t *testing.T) {
	var v weightCases
	readJSON(t, "nginx_weights", &v)
	r := newReplay(t)
	for _, c := range v.Cases {
		f := topology.Foreign{Mode: topology.ModeNginxHash}
		if strings.HasSuffix(c.Options, "consistent") {
			f.Mode = topology.ModeNginx
		}
		nodes := list(c.Servers, c.Weights)
		for _, i := range c.Down {
			nodes[i].State = topology.StateDown
		}
		r.check(c.Name, f, nodes, c.picks)
	}
	r.done(4 * 867)
}
