package shadow

import (
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
)

// Client routes as the client in it does, and shows every request to a shadow.
// All other methods are the client's own, and are not observed.
type Client struct {
	*sdk.Client
	shadow *Shadow
}

// Wrap returns a client whose lookups s observes.
func Wrap(c *sdk.Client, s *Shadow) *Client { return &Client{c, s} }

// Shadow returns the shadow.
func (c *Client) Shadow() *Shadow { return c.shadow }

// Route is sdk.Client.Route. A lookup that fails is not counted.
func (c *Client) Route(key string) (sdk.Route, error) {
	r, err := c.Client.Route(key)
	if err == nil {
		c.shadow.Observe(key)
	}
	return r, err
}

// RouteN is sdk.Client.RouteN; one call is one request.
func (c *Client) RouteN(dst []sdk.Route, key string, n int) ([]sdk.Route, error) {
	dst, err := c.Client.RouteN(dst, key, n)
	if err == nil {
		c.shadow.Observe(key)
	}
	return dst, err
}

// Follow keeps the shadow's old mapping at the version that the client holds, until
// stop is called. A version whose table cannot be built leaves it as it is; the
// client would not have taken it. It costs a build of the table for each version,
// beside the client's own.
func Follow(c *sdk.Client, s *Shadow) (stop func()) {
	return c.OnChange(func(change sdk.Change) {
		p := s.pair.Load()
		if table, err := placement.Next(p.old, change.To); err == nil {
			s.Set(table, p.new)
		}
	})
}
