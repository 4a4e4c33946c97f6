package etcdkv

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/topology"
)

// Live is the key of a node's presence, kept under the node's own lease.
func (k Keys) Live(id string) string { return k.Lives() + id }

// Lives is the prefix of all presences.
func (k Keys) Lives() string { return k.base + "live/" }

// Member is the key of what admission remembers of a node, without a lease.
func (k Keys) Member(id string) string { return k.Members() + id }

// Members is the prefix of all that admission remembers.
func (k Keys) Members() string { return k.base + "member/" }

// Overlay is the key of what the leader says of the nodes' health, under the
// leader's lease.
func (k Keys) Overlay() string { return k.base + "health" }

// Overlay is what the leader says of the nodes' health.
type Overlay struct {
	Bad []string `json:"bad"` // whose own check fails, ascending
}

// DecodeOverlay reads an Overlay.
func DecodeOverlay(b []byte) (Overlay, error) { return decodeRecord[Overlay](b, "health") }

// Live is the presence of one node.
type Live struct {
	ID          string             `json:"id"`
	Cluster     topology.ClusterID `json:"cluster"`
	Addr        string             `json:"addr,omitempty"`
	Zone        string             `json:"zone,omitempty"`     // "" = keep the stored one
	Weight      *uint32            `json:"weight,omitempty"`   // nil = keep the stored one
	Owner       string             `json:"owner"`              // 128 random bits of the process, in hexadecimal
	Identity    string             `json:"identity,omitempty"` // names the node across processes and addresses
	Incarnation uint64             `json:"incarnation"`        // raised with every lease, from 1
	Drain       bool               `json:"drain,omitempty"`    // the wish to give its keys up
	Health      string             `json:"health,omitempty"`   // "", "ok" or "bad"
	Reason      string             `json:"reason,omitempty"`   // why it is bad
}

// Member is what admission remembers of a node.
type Member struct {
	ID          string         `json:"id"`
	Owner       string         `json:"owner,omitempty"` // of the presence that was admitted last
	Incarnation uint64         `json:"incarnation,omitempty"`
	Addr        string         `json:"addr,omitempty"` // what it asked for
	Zone        string         `json:"zone,omitempty"`
	Weight      *uint32        `json:"weight,omitempty"`
	State       topology.State `json:"state"` // what admission declared last
	Next        topology.State `json:"next"`  // what it is about to declare
	Admitted    bool           `json:"admitted,omitempty"`
}

// DecodeLive reads the presence at the key of node id in cluster. Whatever is
// not whole, or was written for another cluster or node, is ErrCorrupt.
func DecodeLive(cluster topology.ClusterID, id string, b []byte) (Live, error) {
	l, err := decodeRecord[Live](b, "presence")
	if err != nil {
		return Live{}, err
	}
	owner, err := hex.DecodeString(l.Owner)
	switch {
	case l.ID != id:
		return Live{}, fmt.Errorf("%w: presence of node %q at the key of %q", ErrCorrupt, l.ID, id)
	case l.Cluster != cluster:
		return Live{}, fmt.Errorf("%w: node %q registered for cluster %s, this is %s", ErrCorrupt, id, l.Cluster, cluster)
	case err != nil || len(owner) != 16 || l.Incarnation == 0:
		return Live{}, fmt.Errorf("%w: presence of node %q lacks owner or incarnation", ErrCorrupt, id)
	}
	return l, nil
}

// DecodeMember reads what admission remembers of node id.
func DecodeMember(id string, b []byte) (Member, error) {
	m, err := decodeRecord[Member](b, "member")
	if err == nil && m.ID != id {
		err = fmt.Errorf("%w: member %q at the key of %q", ErrCorrupt, m.ID, id)
	}
	if err != nil {
		return Member{}, err
	}
	return m, nil
}

// Renew keeps a lease of ttl alive. It blocks until the lease is lost (an
// error), or ctx ends (ctx.Err()). A lease counts as lost when nothing confirmed
// it for its whole time, though it may still be there: whoever needs its keys
// takes them over with a new one.
func (c *Client) Renew(ctx context.Context, id clientv3.LeaseID, ttl time.Duration) error {
	answers, err := c.lease.KeepAlive(ctx, id)
	if err != nil {
		// One error that etcd's client takes for final, such as a log-in that
		// was refused once, ends its keep-alive of all leases for good.
		return c.renewByCalls(ctx, id, ttl)
	}
	for range answers { // closed when the lease is lost or ctx ends
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: the lease was lost", ErrUnreachable)
}

// renewByCalls makes one call every third of ttl. A call has to have its
// deadline: while etcd is away the client makes it again without a pause.
func (c *Client) renewByCalls(ctx context.Context, id clientv3.LeaseID, ttl time.Duration) error {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	confirmed := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		try, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		asked := time.Now()
		_, err := c.lease.KeepAliveOnce(try, id)
		cancel()
		switch {
		case err == nil:
			confirmed = asked
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return fmt.Errorf("etcdkv: renew: %w", err)
		case time.Since(confirmed) > ttl:
			return fmt.Errorf("%w: the lease was lost: %w", ErrUnreachable, err)
		}
	}
}
