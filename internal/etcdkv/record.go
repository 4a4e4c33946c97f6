package etcdkv

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardd/shardd/topology"
)

// Format is the layout's number in a cluster's meta. A cluster of another
// format is refused.
const Format = 1

// Meta is a cluster's identity.
type Meta struct {
	Format  int                `json:"format"`
	ID      topology.ClusterID `json:"id"`
	Epoch   uint64             `json:"epoch"`
	History topology.History   `json:"history"`
	// Standing is the store's own, opaque here. It lies in meta because every
	// write of the leader compares meta.
	Standing json.RawMessage `json:"standing,omitempty"`
	Edit     string          `json:"edit,omitempty"` // drawn anew with every write, so that a writer recognises its own
}

// Declared points at the declared state.
type Declared struct {
	Generation uint64          `json:"generation"` // from 1
	Digest     topology.Digest `json:"digest"`     // content, see EncodeDeclared
	// Edit is drawn anew for every edit, so that an editor recognises its own.
	Edit  string          `json:"edit"`
	Notes json.RawMessage `json:"notes,omitempty"` // the store's own; opaque here
	// Recent are the Edits of the last MaxRecent writes before, the newest
	// first: an editor whose answer was lost, and whose write others have
	// written over since, finds its own among them.
	Recent []string `json:"recent,omitempty"`
}

// MaxRecent is the number of writes that Declared remembers.
const MaxRecent = 32

// After returns what is to be remembered after d, which may be zero.
func (d Declared) After() []string {
	if d.Edit == "" {
		return nil
	}
	return append([]string{d.Edit}, d.Recent[:min(len(d.Recent), MaxRecent-1)]...)
}

// Made reports whether the write named edit, which was to follow the one named
// before, was made in what led to d. sure is false if there were too many since to
// tell.
func (d Declared) Made(edit, before string) (made, sure bool) {
	all := append([]string{d.Edit}, d.Recent...)
	if slices.Contains(all, edit) {
		return true, true
	}
	return false, slices.Contains(all, before) || len(all) <= MaxRecent // all that there were
}

// Head points at the newest version.
type Head struct {
	Version    topology.Version  `json:"version"`
	History    topology.History  `json:"history"`
	Digest     topology.Digest   `json:"digest"`            // content of the topology
	Mapping    topology.Digest   `json:"mapping"`           // mapping digest
	Objects    []topology.Digest `json:"objects,omitempty"` // contents of its tables
	Generation uint64            `json:"generation"`        // declared generation it answers
	// Edit is drawn anew with every write, so that a writer recognises its own
	// even if another one published the same version at the same moment.
	Edit string `json:"edit,omitempty"`
}

// VersionRecord is one kept version.
type VersionRecord struct {
	Version  topology.Version  `json:"version"`
	History  topology.History  `json:"history"`
	Digest   topology.Digest   `json:"digest"`
	Objects  []topology.Digest `json:"objects,omitempty"`
	Movement topology.Digest   `json:"movement"` // content of the report
	Nodes    int               `json:"nodes"`
	Moved    bool              `json:"moved"` // the mapping is another than the version's before
	Ratio    float64           `json:"ratio"` // share of the key space that moved
	Cause    topology.Cause    `json:"cause"`
}

// Contents lists everything that the record refers to.
func (r VersionRecord) Contents() []topology.Digest {
	return append([]topology.Digest{r.Digest, r.Movement}, r.Objects...)
}

// Contents lists everything that the head refers to.
func (h Head) Contents() []topology.Digest { return append([]topology.Digest{h.Digest}, h.Objects...) }

// Link is one version in the chain.
type Link struct {
	History topology.History
	Digest  topology.Digest
}

// Encode returns "history digest" in hexadecimal.
func (l Link) Encode() []byte { return []byte(l.History.String() + " " + l.Digest.String()) }

// DecodeLink reads what Encode wrote.
func DecodeLink(b []byte) (l Link, err error) {
	history, digest, _ := strings.Cut(string(b), " ")
	if err := errors.Join(l.History.UnmarshalText([]byte(history)), l.Digest.UnmarshalText([]byte(digest))); err != nil {
		return Link{}, fmt.Errorf("%w: link of the chain: %w", ErrCorrupt, err)
	}
	return l, nil
}

// EncodeRecord writes a record. It cannot fail for the records of this package.
func EncodeRecord(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("etcdkv: encode %T: %w", v, err)
	}
	return b, nil
}

// DecodeMeta reads a Meta and refuses another Format.
func DecodeMeta(b []byte) (Meta, error) {
	m, err := decodeRecord[Meta](b, "meta")
	switch {
	case err != nil:
		return Meta{}, err
	case m.Format != Format:
		return Meta{}, fmt.Errorf("%w: meta has format %d, this release reads %d; use the release that wrote it", ErrCorrupt, m.Format, Format)
	case m.ID.IsZero() || m.Epoch == 0 || m.History == 0:
		return Meta{}, fmt.Errorf("%w: meta lacks id, epoch or history", ErrCorrupt)
	}
	return m, nil
}

// DecodeHead reads a Head.
func DecodeHead(b []byte) (Head, error) {
	h, err := decodeRecord[Head](b, "head")
	if err != nil {
		return Head{}, err
	}
	if h.Version.Epoch == 0 || h.Version.Seq == 0 || h.History == 0 || h.Digest.IsZero() || len(h.Objects) > 8 {
		return Head{}, fmt.Errorf("%w: head lacks version, history or digest", ErrCorrupt)
	}
	return h, nil
}

// DecodeDeclared reads a Declared.
func DecodeDeclared(b []byte) (Declared, error) {
	d, err := decodeRecord[Declared](b, "declared")
	if err != nil {
		return Declared{}, err
	}
	if d.Generation == 0 || d.Digest.IsZero() {
		return Declared{}, fmt.Errorf("%w: declared lacks generation or digest", ErrCorrupt)
	}
	return d, nil
}

// DecodeVersion reads a VersionRecord.
func DecodeVersion(b []byte) (VersionRecord, error) {
	r, err := decodeRecord[VersionRecord](b, "version")
	if err != nil {
		return VersionRecord{}, err
	}
	if r.Version.IsZero() || r.Digest.IsZero() || len(r.Objects) > 8 {
		return VersionRecord{}, fmt.Errorf("%w: version lacks its number or digest", ErrCorrupt)
	}
	return r, nil
}

func decodeRecord[T any](b []byte, what string) (v T, err error) {
	if err := json.Unmarshal(b, &v); err != nil {
		var zero T
		return zero, fmt.Errorf("%w: %s is no record: %w", ErrCorrupt, what, err)
	}
	return v, nil
}

// EncodeDeclared returns declared state as a content: the canonical encoding of
// a topology that has the nodes and the spec, and nothing else of its own. It
// puts d into normal form and refuses what topology.New refuses.
func EncodeDeclared(id topology.ClusterID, d topology.Declared) ([]byte, error) {
	t, err := topology.New(topology.Draft{Cluster: d.Cluster, ID: id, History: 1,
		Version: topology.Version{Epoch: 1, Seq: 1}, Spec: d.Spec, Nodes: d.Nodes})
	if err != nil {
		return nil, err
	}
	return t.Encode(), nil
}

// DecodeDeclaredContent reads what EncodeDeclared wrote for the cluster id.
func DecodeDeclaredContent(id topology.ClusterID, b []byte) (topology.Declared, error) {
	t, err := topology.Decode(b)
	if err != nil {
		return topology.Declared{}, fmt.Errorf("%w: declared state: %w", ErrCorrupt, err)
	}
	if t.ClusterID() != id {
		return topology.Declared{}, fmt.Errorf("%w: declared state of cluster %s in cluster %s", ErrCorrupt, t.ClusterID(), id)
	}
	return topology.Declared{Cluster: t.Cluster(), Spec: t.Spec(), Nodes: t.Nodes()}, nil
}

// Precedes reports whether ref is the head or comes before it in its epoch and
// history. link is the value stored in the chain for ref's version.
func (h Head) Precedes(ref topology.Ref, link []byte) bool {
	l, err := DecodeLink(link)
	return err == nil && l == Link{ref.History, ref.Digest} && ref.History == h.History &&
		ref.Version.Epoch == h.Version.Epoch && ref.Version.Seq <= h.Version.Seq
}
