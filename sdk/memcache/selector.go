package memcache

import (
	"errors"
	"net"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Selector lets a memcache.Client ask the SDK where a key is. It is safe for
// concurrent use, as the client is.
type Selector struct{ client *sdk.Client }

var _ memcache.ServerSelector = Selector{}

// NewSelector returns a selector for memcache.NewFromSelector.
func NewSelector(client *sdk.Client) Selector { return Selector{client} }

// PickServer returns the address of the node that requests for key go to.
// Errors: those of sdk.Client.Route; a topology without nodes is
// memcache.ErrNoServers and sdk.ErrNoNodes.
func (s Selector) PickServer(key string) (net.Addr, error) {
	r, err := s.client.Route(key)
	if err != nil {
		return nil, noServers(err)
	}
	return address(r.Addr()), nil
}

// Each calls fn with the address of every node that is up and owns keys or did
// until now, one after another, and returns the first error.
func (s Selector) Each(fn func(net.Addr) error) error {
	t := s.client.Topology()
	if t == nil {
		return sdk.ErrNotReady
	}
	for _, n := range t.Nodes() {
		if n.State == topology.StateLeft || n.State == topology.StateDown {
			continue
		}
		if err := fn(address(n.Addr)); err != nil {
			return err
		}
	}
	return nil
}

// noServers makes gomemcache's own error of ErrNoNodes.
func noServers(err error) error {
	if errors.Is(err, sdk.ErrNoNodes) {
		return errors.Join(memcache.ErrNoServers, err)
	}
	return err
}

// address is a published address, which net.Dial takes as it is. A path is a Unix
// socket.
type address string

func (a address) Network() string {
	if len(a) > 0 && a[0] == '/' {
		return "unix"
	}
	return "tcp"
}

func (a address) String() string { return string(a) }
