package sdk

import "github.com/shardd/shardd/topology"

// WithReset lets the client begin anew: the first topology that its source
// brings is taken whatever the snapshot file holds, as long as it is of the same
// cluster. Until then lookups go by the file. See Client.Reset; give this option
// for one start, not for good, or restarts are no longer protected.
func WithReset() Option { return func(o *options) { o.reset = true } }

// Reset gives up the line of versions that the client holds: the next topology
// that the source brings is taken even if it is older, of another history, or no
// descendant of what is held. Lookups go on by what is held until then; the rule
// of versions holds again from the topology that is taken. It is the explicit
// way back for a client that refuses what its source has (ErrForked, ErrOlder)
// where that is known to be right: it was away for longer than the chain is
// kept, or a store was restored and nobody is to raise the epoch. Raising the
// epoch (shardd epoch bump) is the better way, for it brings all clients forward
// at once; after a Reset two clients may hold different versions until both were
// reset.
//
// The cluster stays pinned: for another cluster make another client. Reset does
// not wait and may be called more than once; after Close it does nothing.
func (c *Client) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return
	}
	c.reset = true
	c.logger.Warn("reset: the next topology is taken whatever it is", "version", c.state.Held.Version)
	if c.rewatch != nil {
		c.rewatch()
	}
}

// claims returns what the client presents and is held to: nothing after a reset.
func (c *Client) claims() topology.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reset {
		return topology.Ref{}
	}
	return c.snap.Load().ref()
}

func (c *Client) endReset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset = false
}
