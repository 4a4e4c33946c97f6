package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Version returns a kept topology; see membership.Reader.
func (c *cluster) Version(ctx context.Context, v topology.Version) (*topology.Topology, error) {
	meta, record, err := c.record(ctx, v)
	if err != nil {
		return nil, translate("version", err)
	}
	c.mu.Lock()
	held := c.head
	c.mu.Unlock()
	t, err := c.s.kv.FetchTopology(ctx, c.keys, record.Digest, record.Objects, held)
	if err != nil {
		return nil, translate("version", gone(v, err))
	}
	if err := c.belongs(t, meta, record.Version, record.History); err != nil {
		return nil, translate("version", err)
	}
	return t, nil
}

// Movement returns the report of a kept version; see membership.Reader.
func (c *cluster) Movement(ctx context.Context, v topology.Version) (placement.Report, error) {
	_, record, err := c.record(ctx, v)
	if err != nil {
		return placement.Report{}, translate("movement", err)
	}
	data, err := c.s.kv.Fetch(ctx, c.keys, record.Movement)
	if err != nil {
		return placement.Report{}, translate("movement", gone(v, err))
	}
	var report placement.Report
	if err := json.Unmarshal(data[0], &report); err != nil {
		return placement.Report{}, translate("movement", fmt.Errorf("%w: report of %s: %w", etcdkv.ErrCorrupt, v, err))
	}
	return report, nil
}

// gone says that a version was collected between its record and its contents.
func gone(v topology.Version, err error) error {
	if errors.Is(err, etcdkv.ErrMissing) {
		return fmt.Errorf("%w: %s", membership.ErrNoVersion, v)
	}
	return err
}

// record reads meta and the record of one version.
func (c *cluster) record(ctx context.Context, v topology.Version) (meta etcdkv.Meta, record etcdkv.VersionRecord, err error) {
	r, err := c.get(ctx, etcdkv.Range{Key: c.keys.Version(v)})
	if err != nil {
		return meta, record, err
	}
	if meta, err = etcdkv.DecodeMeta(r.First(0).Value); err != nil {
		return meta, record, err
	}
	if r.First(1).ModRevision == 0 {
		return meta, record, fmt.Errorf("%w: %s", membership.ErrNoVersion, v)
	}
	if record, err = etcdkv.DecodeVersion(r.First(1).Value); err != nil {
		return meta, record, err
	}
	if record.Version != v {
		return meta, record, fmt.Errorf("%w: %s holds the record of version %s", etcdkv.ErrCorrupt, c.keys.Version(v), record.Version)
	}
	return meta, record, nil
}

// get reads meta and more, or says that there is no such cluster.
func (c *cluster) get(ctx context.Context, more ...etcdkv.Range) (etcdkv.Reading, error) {
	if c.err != nil {
		return etcdkv.Reading{}, c.noCluster()
	}
	r, err := c.s.kv.Get(ctx, append([]etcdkv.Range{{Key: c.keys.Meta()}}, more...)...)
	if err == nil && r.First(0).ModRevision == 0 {
		err = c.noCluster()
	}
	return r, err
}

// Versions lists the kept versions, ascending.
func (c *cluster) Versions(ctx context.Context) ([]membership.VersionInfo, error) {
	r, err := c.get(ctx, etcdkv.Range{Key: c.keys.Versions(), Prefix: true})
	if err != nil {
		return nil, translate("versions", err)
	}
	var infos []membership.VersionInfo
	for _, item := range r.Items[1] {
		v, err := etcdkv.DecodeVersion(item.Value)
		if err != nil || c.keys.Version(v.Version) != item.Key { // not ours
			c.s.log.Warn("ignoring a key that is no version", "key", item.Key, "error", err)
			continue
		}
		infos = append(infos, membership.VersionInfo{Version: v.Version, History: v.History, Digest: v.Digest, Cause: v.Cause, Nodes: v.Nodes, Moved: v.Moved, Ratio: v.Ratio})
	}
	slices.SortFunc(infos, func(a, b membership.VersionInfo) int { return a.Version.Compare(b.Version) })
	return infos, nil
}

// Descends reports whether whoever holds ref may take the head; see
// membership.Reader.
func (c *cluster) Descends(ctx context.Context, ref topology.Ref) (bool, error) {
	r, err := c.get(ctx, etcdkv.Range{Key: c.keys.Head()}, etcdkv.Range{Key: c.keys.Chain(ref.Version)})
	if err != nil {
		return false, translate("descends", err)
	}
	meta, err := etcdkv.DecodeMeta(r.First(0).Value)
	if err != nil {
		return false, translate("descends", err)
	}
	if meta.ID != ref.ClusterID || r.First(1).ModRevision == 0 || r.First(2).ModRevision == 0 {
		return false, nil
	}
	head, err := etcdkv.DecodeHead(r.First(1).Value)
	if err != nil {
		return false, translate("descends", err)
	}
	return head.Precedes(ref, r.First(2).Value), nil
}
