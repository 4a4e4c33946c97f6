package etcdkv

import (
	"context"
	"fmt"

	"github.com/shardd/shardd/topology"
)

// FetchTopology returns the topology with content digest d and the tables that
// objects name (the same that the topology refers to, or it is ErrCorrupt).
// Tables that hold (nil = nothing) has are not fetched. Further contents can
// be fetched in the same reading.
func (c *Client) FetchTopology(ctx context.Context, k Keys, d topology.Digest, objects []topology.Digest, hold *topology.Topology, more ...topology.Digest) (*topology.Topology, [][]byte, error) {
	var have []*topology.Object
	if hold != nil {
		have = hold.Objects()
	}
	need := []topology.Digest{d}
	for _, o := range objects {
		if indexObject(have, o) < 0 {
			need = append(need, o)
		}
	}
	data, err := c.Fetch(ctx, k, append(need, more...)...)
	if err != nil {
		return nil, nil, err
	}
	t, err := assemble(data[:len(need)], have)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: topology %s: %w", ErrCorrupt, d, err)
	}
	return t, data[len(need):], nil
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

func indexObject(objects []*topology.Object, d topology.Digest) int {
	for i, o := range objects {
		if o.Digest() == d {
			return i
		}
	}
	return -1
}
