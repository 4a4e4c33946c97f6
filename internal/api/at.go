package api

import (
	"context"
	"fmt"
	"net/url"

	"github.com/shardd/shardd/topology"
)

// TopologyAt returns the kept version v with its tables. Errors:
// membership.ErrNoCluster, ErrNoVersion (never published, or no longer kept).
func (c *Client) TopologyAt(ctx context.Context, cluster string, v topology.Version) (*topology.Topology, error) {
	b, _, err := c.getBinary(ctx, Path(cluster, "topology"), url.Values{"version": {v.String()}})
	if err != nil {
		return nil, err
	}
	t, err := topology.UnmarshalSaved(b)
	if err == nil && t.Version() != v {
		err = fmt.Errorf("%w: it is version %s", topology.ErrCorrupt, t.Version())
	}
	if err != nil {
		return nil, fmt.Errorf("api: topology %s of %s: %w", v, cluster, err)
	}
	return t, nil
}
