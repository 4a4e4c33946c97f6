package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/shardd/shardd/topology"
)

// ErrDeclined says that a safety check refused what was asked; the message
// names what overrules it.
var ErrDeclined = errors.New("api: refused by a safety check")

// BumpRequest is the body of POST epoch/bump.
type BumpRequest struct {
	// Above is an epoch that the new one has to be above of, besides the
	// stored one and all that were presented; 0 = none.
	Above uint64 `json:"above,omitempty"`
	// Force raises the epoch though nothing shows that the store went back.
	Force bool `json:"force,omitempty"`
}

// Frozen is the answer of POST freeze and POST unfreeze.
type Frozen struct {
	Cluster string           `json:"cluster"`
	Frozen  bool             `json:"frozen"`
	By      string           `json:"by,omitempty"` // who froze it first
	Why     string           `json:"why,omitempty"`
	Version topology.Version `json:"version"` // newest; zero before the first
	Pending uint64           `json:"pending"` // edits that no version contains yet
}

// Bump raises the epoch of a cluster whose store went back. Errors: ErrDeclined
// (nothing shows that it did), membership.ErrNoCluster.
func (c *Client) Bump(ctx context.Context, cluster string, b BumpRequest, o EditOptions) (EditResult, error) {
	return c.post(ctx, Path(cluster, "epoch", "bump"), b, o)
}

// post sends v to path as an edit.
func (c *Client) post(ctx context.Context, path string, v any, o EditOptions) (EditResult, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return EditResult{}, fmt.Errorf("api: %w", err)
	}
	return c.edit(ctx, request{method: http.MethodPost, path: path, body: string(body)}, o)
}

// Freeze holds back publication; freezing twice is no error. Errors:
// membership.ErrNoCluster.
func (c *Client) Freeze(ctx context.Context, cluster string, o EditOptions) (Frozen, error) {
	return c.freeze(ctx, Path(cluster, "freeze"), o)
}

// Unfreeze lets publication go on.
func (c *Client) Unfreeze(ctx context.Context, cluster string, o EditOptions) (Frozen, error) {
	return c.freeze(ctx, Path(cluster, "unfreeze"), o)
}

func (c *Client) freeze(ctx context.Context, path string, o EditOptions) (v Frozen, err error) {
	a, err := c.sendEdit(ctx, request{method: http.MethodPost, path: path, body: "{}"}, o)
	if err != nil {
		return v, err
	}
	return v, a.readJSON(&v)
}
