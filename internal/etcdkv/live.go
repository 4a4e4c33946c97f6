package etcdkv

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
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
//
// It asks every third of ttl on a stream of its own, and so on whichever member is
// next. etcd's client has one stream for all leases: if its member freezes, all of
// them are lost, and those that take their place, until the connection is given up
// 13 s later. A client in this process has no connection and uses that stream.
func (c *Client) Renew(ctx context.Context, id clientv3.LeaseID, ttl time.Duration) error {
	if c.conn == nil {
		return c.renewInProcess(ctx, id, ttl)
	}
	return c.renewBy(ctx, id, ttl, c.keepAlive)
}

// renewBy renews by calls. What is left of ttl is for tries in case one fails, each
// with a third of what is left then.
func (c *Client) renewBy(ctx context.Context, id clientv3.LeaseID, ttl time.Duration, ask func(context.Context, clientv3.LeaseID) error) error {
	confirmed := time.Now()
	for wait := ttl / 3; ; {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
		asked := time.Now()
		try, cancel := context.WithTimeout(ctx, max(50*time.Millisecond, (ttl-asked.Sub(confirmed))/3))
		err := ask(try, id)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			confirmed, wait = asked, max(0, ttl/3-time.Since(asked))
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return fmt.Errorf("etcdkv: renew: %w", err)
		case time.Since(confirmed) > ttl:
			return fmt.Errorf("%w: the lease was lost: %w", ErrUnreachable, err)
		default:
			wait = max(20*time.Millisecond, ttl/50)
		}
	}
}

// keepAlive renews a lease once.
func (c *Client) keepAlive(ctx context.Context, id clientv3.LeaseID) error {
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := pb.NewLeaseClient(c.conn).LeaseKeepAlive(clientv3.WithRequireLeader(ctx))
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		return err
	}
	resp, err := stream.Recv()
	if err == nil && resp.TTL <= 0 {
		err = rpctypes.ErrLeaseNotFound
	}
	return err
}

func (c *Client) renewInProcess(ctx context.Context, id clientv3.LeaseID, ttl time.Duration) error {
	answers, err := c.lease.KeepAlive(ctx, id)
	if err != nil {
		// One error that etcd's client takes for final ends its keep-alive of
		// all leases for good.
		return c.renewBy(ctx, id, ttl, func(ctx context.Context, id clientv3.LeaseID) error {
			_, err := c.lease.KeepAliveOnce(ctx, id)
			return err
		})
	}
	for range answers { // closed when the lease is lost or ctx ends
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: the lease was lost", ErrUnreachable)
}
