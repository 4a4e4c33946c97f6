package main

import (
	"net"

	"github.com/shardd/shardd/sdk"
)

// selector lets gomemcache ask the SDK where a key is: all that an application
// needs to change. It is safe for concurrent use, as the client is.
type selector struct{ client *sdk.Client }

// PickServer returns the address of the node that owns the key.
func (s selector) PickServer(key string) (net.Addr, error) {
	r, err := s.client.Route(key)
	if err != nil {
		return nil, err
	}
	return address(r.Addr()), nil
}

// Each calls fn with the address of every node.
func (s selector) Each(fn func(net.Addr) error) error {
	t := s.client.Topology()
	if t == nil {
		return sdk.ErrNotReady
	}
	for _, n := range t.Nodes() {
		if err := fn(address(n.Addr)); err != nil {
			return err
		}
	}
	return nil
}

// address is a published address, which net.Dial takes as it is.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
