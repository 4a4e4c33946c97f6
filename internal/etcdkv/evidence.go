package etcdkv

import (
	"fmt"

	"github.com/shardd/shardd/topology"
)

// Evidence is the key at which a client that reads etcd itself presents a version
// that it holds and the store does not continue. One key a digest, so that a fleet
// writes it once; without a lease, for a server that runs later; removed by the
// server that has looked at it.
func (k Keys) Evidence(held topology.Digest) string { return k.Evidences() + held.String() }

// Evidences is the prefix of all evidence.
func (k Keys) Evidences() string { return k.base + "evidence/" }

// Evidence is a version that a client holds.
type Evidence struct {
	Ref topology.Ref `json:"ref"`
	By  string       `json:"by,omitempty"` // who holds it
}

// DecodeEvidence reads an Evidence.
func DecodeEvidence(b []byte) (Evidence, error) {
	e, err := decodeRecord[Evidence](b, "evidence")
	if err == nil && (e.Ref.ClusterID.IsZero() || e.Ref.Digest.IsZero()) {
		err = fmt.Errorf("%w: evidence lacks cluster id or digest", ErrCorrupt)
	}
	return e, err
}
