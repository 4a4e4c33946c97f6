package sdk

import (
	"fmt"

	"github.com/shardd/shardd/topology"
)

// verdict says what a client does with an offered topology.
type verdict uint8

const (
	take   verdict = iota // a later version of the own chain
	have                  // exactly what is held
	refuse                // the error says why
)

// admit is the rule by which versions never go back. A client that follows the
// cluster pinned (zero = not decided yet) and holds held (zero = nothing) takes
// what is offered if and only if
//
//   - it is of the pinned cluster, and
//   - nothing is held, or its epoch is higher, or it has the same epoch and
//     history, a higher seq, and the held digest in its chain.
//
// The chain itself is not sent along. parent, the offered version's parent
// digest, settles the next version here and now; for versions further on the
// source has had the proof from the other side before it offers them (see
// Source). admit is pure, so that a model checker can drive it.
func admit(pinned topology.ClusterID, held, offered topology.Ref, parent topology.Digest) (verdict, error) {
	if !pinned.IsZero() && offered.ClusterID != pinned {
		return refuse, fmt.Errorf("%w: it has cluster id %s, this client follows %s; mend the source's address, or start a new client with the other id if that is meant", ErrCluster, offered.ClusterID, pinned)
	}
	h, o := held.Version, offered.Version
	switch {
	case held.IsZero() || o.Epoch > h.Epoch:
		return take, nil
	case o.Epoch < h.Epoch:
		return refuse, fmt.Errorf("%w: epoch %d is before %d; a server lags or the store went back", ErrOlder, o.Epoch, h.Epoch)
	case offered.History != held.History:
		return refuse, fmt.Errorf("%w: epoch %d has history %s there and %s here; two stores began the same epoch", ErrForked, o.Epoch, offered.History, held.History)
	case o.Seq < h.Seq:
		return refuse, fmt.Errorf("%w: %s is before %s; a server lags or the store went back", ErrOlder, o, h)
	case o.Seq == h.Seq && offered.Digest == held.Digest:
		return have, nil
	case o.Seq == h.Seq:
		return refuse, fmt.Errorf("%w: version %s has digest %s there and %s here; a copy of the store was written to", ErrForked, o, offered.Digest, held.Digest)
	case o.Seq == h.Seq+1 && parent != held.Digest:
		return refuse, fmt.Errorf("%w: the parent of %s is %s, but %s has digest %s here; a copy of the store was written to", ErrForked, o, parent, h, held.Digest)
	}
	return take, nil
}
