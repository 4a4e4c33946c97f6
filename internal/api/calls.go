package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/shardd/shardd/topology"
)

func (c *Client) getJSON(ctx context.Context, path string, query url.Values, v any) (http.Header, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return nil, err
	}
	return a.Header, a.readJSON(v)
}

func (c *Client) getBinary(ctx context.Context, path string, query url.Values) ([]byte, http.Header, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query, header: http.Header{"Accept": {TypeBinary}}})
	if err != nil {
		return nil, nil, err
	}
	defer a.close()
	b, err := a.readAll()
	return b, a.Header, err
}

// Clusters lists the clusters.
func (c *Client) Clusters(ctx context.Context) (Clusters, error) {
	var v Clusters
	_, err := c.getJSON(ctx, "/v1/clusters", nil, &v)
	return v, err
}

// Topology returns the newest version with its tables, and the cluster's
// entity tag. Errors: membership.ErrNoCluster, ErrNoVersion (nothing published
// yet).
func (c *Client) Topology(ctx context.Context, cluster string) (*topology.Topology, ETag, error) {
	b, header, err := c.getBinary(ctx, Path(cluster, "topology"), nil)
	if err != nil {
		return nil, ETag{}, err
	}
	t, err := topology.UnmarshalSaved(b)
	if err != nil {
		return nil, ETag{}, fmt.Errorf("api: topology of %s: %w", cluster, err)
	}
	tag, err := ParseETag(header.Get("ETag"))
	return t, tag, err
}

// Object returns the table of this digest. Errors: membership.ErrNoVersion (not
// kept), topology.ErrCorrupt.
func (c *Client) Object(ctx context.Context, cluster string, digest topology.Digest) (*topology.Object, error) {
	b, _, err := c.getBinary(ctx, Path(cluster, "objects", digest.String()), nil)
	if err != nil {
		return nil, err
	}
	o, err := topology.DecodeObject(b)
	if err == nil && o.Digest() != digest {
		err = fmt.Errorf("%w: it has digest %s", topology.ErrCorrupt, o.Digest())
	}
	if err != nil {
		return nil, fmt.Errorf("api: object %s: %w", digest, err)
	}
	return o, nil
}

// Declared returns the declared state and the cluster's entity tag.
func (c *Client) Declared(ctx context.Context, cluster string) (Declared, ETag, error) {
	var v Declared
	header, err := c.getJSON(ctx, Path(cluster, "spec"), nil, &v)
	if err != nil {
		return Declared{}, ETag{}, err
	}
	tag, err := ParseETag(header.Get("ETag"))
	return v, tag, err
}

// EditOptions accompany an edit. The zero value edits whatever is there and
// waits as long as the server does by default.
type EditOptions struct {
	// IfMatch is the entity tag that the editor saw; zero = any. If the
	// declared state has changed since: membership.ErrConflict.
	IfMatch ETag
	// Wait is how long to wait for the version that answers the edit: 0 =
	// the server's default, negative = not at all.
	Wait time.Duration
	// Why is put into the version's cause.
	Why string
	// By says who edits, in place of the client's; "" = the client's.
	By string
	// Create refuses the edit if the cluster is there (PutSpec only).
	Create bool
	// Empty allows a declaration without nodes (PutSpec only), which is
	// refused otherwise: it may be a file that was cut off.
	Empty bool
}

// defaultEditWait is at least what a server waits by default.
const defaultEditWait = 10 * time.Second

func (c *Client) edit(ctx context.Context, r request, o EditOptions) (v EditResult, err error) {
	a, err := c.sendEdit(ctx, r, o)
	if err != nil {
		return v, err
	}
	return v, a.readJSON(&v)
}

func (c *Client) sendEdit(ctx context.Context, r request, o EditOptions) (*answer, error) {
	r.query = url.Values{}
	r.wait = defaultEditWait
	if o.Wait != 0 {
		r.wait = max(o.Wait, 0)
		r.query.Set("wait", r.wait.String())
	}
	if by := cmp.Or(o.By, c.by); by != "" {
		r.query.Set("by", by)
	}
	if o.Why != "" {
		r.query.Set("why", o.Why)
	}
	if o.Empty {
		r.query.Set("empty", "true")
	}
	r.header = http.Header{"Content-Type": {TypeJSON}}
	if o.Create {
		r.header.Set("If-None-Match", "*")
	}
	if o.IfMatch != (ETag{}) {
		r.header.Set("If-Match", o.IfMatch.String())
	}
	return c.do(ctx, r)
}

// PutSpec declares spec and nodes of d.Cluster, whole, and creates the cluster
// if it is not there and o.IfMatch is zero. Errors: membership.ErrConflict,
// ErrInvalid.
func (c *Client) PutSpec(ctx context.Context, d topology.Declared, o EditOptions) (EditResult, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return EditResult{}, fmt.Errorf("api: %w", err)
	}
	return c.edit(ctx, request{method: http.MethodPut, path: Path(d.Cluster, "spec"), body: string(body)}, o)
}

// EditNode does verb to one node. Errors: membership.ErrConflict, ErrInvalid,
// ErrNoCluster, ErrNoNode, ErrExists.
func (c *Client) EditNode(ctx context.Context, cluster, id string, verb Verb, e NodeEdit, o EditOptions) (EditResult, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return EditResult{}, fmt.Errorf("api: %w", err)
	}
	return c.edit(ctx, request{method: http.MethodPost, path: Path(cluster, "nodes", id, string(verb)), body: string(body)}, o)
}

// History returns the newest kept versions, at most limit; 0 = the server's
// default of 20.
func (c *Client) History(ctx context.Context, cluster string, limit int) (History, error) {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var v History
	_, err := c.getJSON(ctx, Path(cluster, "history"), query, &v)
	return v, err
}

// Movement returns the report of a kept version. Errors:
// membership.ErrNoVersion.
func (c *Client) Movement(ctx context.Context, cluster string, version topology.Version) (Movement, error) {
	var v Movement
	_, err := c.getJSON(ctx, Path(cluster, "movement", version.String()), nil, &v)
	return v, err
}

// Route asks the server where a key belongs, with its first n nodes; 0 = the
// spec's number of replicas. For anything but looking use the SDK.
func (c *Client) Route(ctx context.Context, cluster string, key []byte, n int) (Route, error) {
	query := url.Values{"key_hex": {hex.EncodeToString(key)}}
	if n > 0 {
		query.Set("n", strconv.Itoa(n))
	}
	var v Route
	_, err := c.getJSON(ctx, Path(cluster, "route"), query, &v)
	return v, err
}
