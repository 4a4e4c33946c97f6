package sdk

import "context"

// AcquireExcept is Acquire for the call's key, or AcquireAny with call.Any, for a
// request that must not go to some nodes, by id: those that could not be reached, or
// that have failed it already. Ids that no node has are passed over. The key's order is
// kept, so that without its owner the request goes to the next; it counts in the load
// of the node that it goes to. call.Mark is not used.
//
// The cost is that of an Acquire that is refused, and O(len(except)). Errors: as
// Acquire; ErrUnavailable if nobody else takes it.
func (c *Client) AcquireExcept(ctx context.Context, call Call, except []string) (Ticket, error) {
	s := c.snap.Load()
	if call.Cost == 0 {
		call.Cost = 1
	}
	p, err := c.admissible(ctx, s, call.Cost)
	if err != nil {
		return Ticket{}, err
	}
	r := request{f: c.fleet, s: s, p: p, cost: call.Cost}
	ask := r.any
	if !call.Any {
		r.hash = s.table.Hash(call.Key)
		ask = r.acquire
	}
	return r.ticket(ask(except))
}
