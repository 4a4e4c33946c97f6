package api

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/url"

	"github.com/shardd/shardd/topology"
)

// Explain is the answer of GET explain: where a key belongs at one version, and
// since when.
type Explain struct {
	Route
	Cause topology.Cause `json:"cause"` // of Version
	// Since is the oldest version looked at from which on the owner did not
	// change; Moved the change before that, nil if none was found.
	Since topology.Version `json:"since"`
	Moved *OwnerChange     `json:"moved,omitempty"`
	// Looked is how many kept versions were looked at, at most ExplainDepth.
	Looked int `json:"looked"`
}

// ExplainDepth bounds how many versions an explanation looks back.
const ExplainDepth = 16

// OwnerChange is a version that gave a key to another node.
type OwnerChange struct {
	Version topology.Version `json:"version"`
	From    string           `json:"from"` // node id; "" = no node owned keys
	To      string           `json:"to"`
	Cause   topology.Cause   `json:"cause"`
}

// Rollback is the body of POST rollback.
type Rollback struct {
	Version topology.Version `json:"version"`
}

// Rollback declares spec and nodes of a kept version again, which makes a new
// version. Errors: membership.ErrNoVersion, ErrConflict, ErrFrozen.
func (c *Client) Rollback(ctx context.Context, cluster string, v topology.Version, o EditOptions) (EditResult, error) {
	return c.post(ctx, Path(cluster, "rollback"), Rollback{v}, o)
}

// Explain says where a key belonged at a kept version (zero = the newest), and
// since when. Errors: membership.ErrNoVersion.
func (c *Client) Explain(ctx context.Context, cluster string, key []byte, at topology.Version) (Explain, error) {
	query := url.Values{"key_hex": {hex.EncodeToString(key)}}
	if !at.IsZero() {
		query.Set("at", at.String())
	}
	var v Explain
	_, err := c.getJSON(ctx, Path(cluster, "explain"), query, &v)
	return v, err
}

// DeleteCluster removes a cluster with all its versions, if it still has this
// id. confirm must be its name: the server refuses the request without it.
// Errors: ErrDeclined, membership.ErrNoCluster, ErrConflict (another id).
func (c *Client) DeleteCluster(ctx context.Context, cluster, confirm string, id topology.ClusterID) error {
	query := url.Values{"confirm": {confirm}, "id": {id.String()}}
	if c.by != "" {
		query.Set("by", c.by)
	}
	a, err := c.do(ctx, request{method: http.MethodDelete, path: Path(cluster), query: query})
	if err == nil {
		a.close()
	}
	return err
}
