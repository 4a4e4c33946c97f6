package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
)

// Unit is the unit of figures without one.
const Unit = time.Second

// ErrConfig says that a Config cannot be run; the text says why.
var ErrConfig = errors.New("sim: bad config")

// Limits of a Config, and of the times that a Dist draws.
const (
	maxRate = 1e9
	longest = 1 << 60 * time.Nanosecond // 36 years
)

// Discipline is how a server shares itself among its requests.
type Discipline uint8

const (
	// FIFO serves in the order of arrival, Server.Slots at a time.
	FIFO Discipline = iota
	// Sharing serves all at once, each at an equal part of the rate.
	Sharing
	// Delay serves all at once, each at the full rate: there is no queue.
	Delay
)

// Server describes one server.
type Server struct {
	Discipline Discipline
	// Slots is how many requests FIFO serves at a time; 0 means 1.
	Slots int
	// Limit is how many requests the server holds at most, waiting or in service;
	// further ones are answered balance.Overload at once. 0 is without limit.
	Limit int
	// Rate is the work done in a unit of time; 0 means 1.
	Rate float64
}

// Client is one balancer with what it knows.
type Client struct {
	// Picker picks among the members of its set.
	Picker balance.Picker
	// Servers are the servers that the members stand for; nil: the same numbers.
	Servers []int
}

// Config describes a run.
type Config struct {
	Seed    uint64
	Servers []Server
	// Clients share the arrivals: each request goes to one drawn uniformly.
	Clients []Client
	// Rate is the number of arrivals a unit, in all; 0 is none but by Sim.Send.
	Rate float64
	// Gap is the distribution of the time between arrivals in parts of the mean;
	// nil is exponential: a Poisson process.
	Gap Dist
	// Service is the work of a request in units; nil is exponential with mean 1.
	Service Dist
	// Work replaces Service where work depends on the server, its load before the
	// request, or the time; it is asked when the request arrives.
	Work func(server, load int, dice *Dice) float64
	// Warmup and Window say which requests are counted, and when arrivals end.
	Warmup, Window time.Duration
	// Waiting makes the figures those of the time before service, in place of all
	// of the sojourn. Sharing has no such time: it is all of the sojourn less the
	// work.
	Waiting bool
	// Timeout is told to policies as the request's time-out; nothing is cut off.
	Timeout time.Duration

	// Sent is called after a request has reached the server that was picked; nil is
	// nobody, as for those below.
	Sent func(client, server int)
	// Arrived is called when a request reaches a server, before it is counted
	// there; what it returns is given to Ended.
	Arrived func(server int) int64
	// Fate says how a request ends; nil is balance.Success for all.
	Fate func(server int, dice *Dice) balance.Result
	// Ended is called at a request's end, after its ticket is done.
	Ended func(End)
	// Refused is called when a client's pick fails.
	Refused func(client int, err error)
}

// End is a request that has ended.
type End struct {
	Client, Server int
	Class          int32 // as given to Send, 0 for arrivals
	Token          int64 // of Config.Arrived
	At, Took       time.Duration
	Result         balance.Result
}

func (c *Config) check() error {
	switch {
	case len(c.Servers) == 0 || len(c.Clients) == 0:
		return fmt.Errorf("%w: %d servers and %d clients: want 1 or more of both", ErrConfig, len(c.Servers), len(c.Clients))
	case !(c.Rate >= 0 && c.Rate <= maxRate):
		return fmt.Errorf("%w: rate %v: want 0 to %g", ErrConfig, c.Rate, float64(maxRate))
	case c.Warmup < 0 || c.Window < 0 || c.Warmup > longest || c.Window > longest:
		return fmt.Errorf("%w: warm-up %v, window %v: want 0 to %v", ErrConfig, c.Warmup, c.Window, longest)
	}
	for i, s := range c.Servers {
		if s.Discipline > Delay || s.Slots < 0 || s.Limit < 0 || !(s.Rate >= 0) {
			return fmt.Errorf("%w: server %d: %+v: want a discipline and nothing negative", ErrConfig, i, s)
		}
	}
	for i, c := range c.Clients {
		if c.Picker == nil {
			return fmt.Errorf("%w: client %d has no picker", ErrConfig, i)
		}
	}
	return nil
}

// Equal returns n servers alike.
func Equal(n int, s Server) []Server {
	list := make([]Server, n)
	for i := range list {
		list[i] = s
	}
	return list
}

// Server returns the server that a member of the client's set stands for.
func (c *Client) Server(member int) int {
	if c.Servers == nil {
		return member
	}
	return c.Servers[member]
}
