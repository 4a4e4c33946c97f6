package etcdkv

import (
	"context"
	"fmt"
	"slices"

	"github.com/shardd/shardd/topology"
)

// FetchTopology returns the topology with content digest d, complete with the
// tables that objects name. Tables that hold (nil = nothing) has are not
// fetched. Errors: those of Fetch; ErrCorrupt if the contents do not make up a
// topology.
func (c *Client) FetchTopology(ctx context.Context, k Keys, d topology.Digest, objects []topology.Digest, hold *topology.Topology) (*topology.Topology, error) {
	var have []*topology.Object
	if hold != nil {
		have = hold.Objects()
	}
	need := []topology.Digest{d}
	for _, o := range objects {
		if !slices.ContainsFunc(have, func(h *topology.Object) bool { return h.Digest() == o }) {
			need = append(need, o)
		}
	}
	data, err := c.Fetch(ctx, k, need...)
	if err != nil {
		return nil, err
	}
	t, err := assemble(data, have)
	if err != nil {
		return nil, fmt.Errorf("%w: topology %s: %w", ErrCorrupt, d, err)
	}
	return t, nil
}

func assemble(data [][]byte, have []*topology.Object) (*topology.Topology, error) {
	t, err := topology.Decode(data[0])
	if err != nil {
		return nil, err
	}
	for _, b := range data[1:] {
		o, err := topology.DecodeObject(b)
		if err != nil {
			return nil, err
		}
		have = append(have[:len(have):len(have)], o)
	}
	return t.Attach(have...)
}
