package sdk

import (
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/bounded"
)

// LoadView says whose requests count as a node's load, and how old that is.
type LoadView uint8

const (
	// OwnLoad is this client's own cost in flight: exact and never stale, and
	// blind to all other clients. It bounds a node's whole load as long as each
	// client has more than about one request in flight for each node; with many
	// small clients it bounds little and turns requests away needlessly.
	OwnLoad LoadView = iota
	// ReportedLoad is what the node said of itself in its last answer
	// (Ticket.Report) and this client's own change since: as old as the last
	// answer from that node. A node that has not answered for BoundedLoad.Fade
	// fades towards the mean of the others. Choose it where servers can put
	// their load into answers.
	ReportedLoad
	// SpillLoad counts nothing: of the requests for the keys of a node, a
	// share that is published for it (Client.SetSpill) goes to the next in
	// order, by chance. As old as the publication, and it does not herd, as
	// thresholds on old loads would: a share moves a little each time.
	SpillLoad
)

// BoundedLoad configures Acquire. The zero value is: the factor of the topology,
// own load, exact, over the whole order of a key.
type BoundedLoad struct {
	// Factor is c: a node's cap is c times its share of the load. 0 means the
	// topology's (topology.Spec.BoundedLoad, where 0 is off), a negative number
	// off, else 1 to 1000 (bounded.MaxFactor); 1.25 is usual.
	Factor float64
	// View says whose load counts.
	View LoadView
	// Within is how many nodes of the key's order may be asked; 0 means all.
	// Give the number of replicas where the others do not hold the key. If all of
	// them are over their caps, the least loaded takes the request, counted as
	// over its cap.
	Within int
	// TotalEvery lets the total that caps are taken from lag by so many
	// admissions and releases of each core; 0 and 1 mean it is exact. With 32 two
	// cores wait for each other much less (BenchmarkAcquireCores).
	TotalEvery int
	// Fade is the time in which a reported load that nobody renews fades by e
	// towards the mean; 0 means 10 s, negative never. Give ten times the usual
	// time between two answers of one node, at least.
	Fade time.Duration
}

// WithBoundedLoad configures the bound of Acquire. New refuses what cannot be.
func WithBoundedLoad(b BoundedLoad) Option { return func(o *options) { o.bound = b } }

// Balance says by what policy nodes are chosen where there is a choice.
type Balance struct {
	// Policy makes the picker of the first topology; later ones come from its
	// Next. It is called as a topology is taken, and must not call the client. A set
	// that it refuses is served by P2C, until one comes that it takes. nil means P2C over requests in flight.
	//
	//	func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) }
	Policy func(*balance.Set) (balance.Picker, error)
	// Replicas lets the policy choose among the replicas of a key
	// (topology.Spec.Replicas), where Acquire otherwise prefers the first in
	// order. AcquireAny always goes by the policy.
	Replicas bool
	// ErrorLoad lets recent errors count as load with the default policy, so
	// that a node that fails fast does not draw all requests; the zero value is
	// one request an error, fading in 10 s.
	ErrorLoad balance.ErrorLoad
}

// WithBalance lets requests be spread by a policy: those without a key
// (AcquireAny), and those with one among its replicas.
func WithBalance(b Balance) Option { return func(o *options) { o.balance = &b } }

// WithZone says in which zone this process runs (topology.Node.Zone of its
// neighbours): Acquire then prefers replicas of the key in that zone while their
// load is under the cap, and goes to the others in order when it is not. It needs
// topology.Spec.Replicas above 1, best with ZoneAware: the only node of a key is
// where it is. Without WithZone, and with "", zones do not matter to the choice.
//
// With OwnLoad the cap of a replica in the zone is c times the share that it
// would have of this client's requests if all stayed in the zone, since the
// client cannot see that other zones' clients load the other nodes; with
// ReportedLoad it is the same cap as everywhere.
func WithZone(zone string) Option { return func(o *options) { o.zone = zone } }

// WithClock sets the clock: the time since any fixed origin, never backwards. The
// default is the time since New. For tests and simulators.
func WithClock(clock func() time.Duration) Option { return func(o *options) { o.clock = clock } }

// WithChance sets the source of the 64 random bits that a choice among nodes is
// made by; it is called concurrently. The default is rand.Uint64 of math/rand/v2.
// For tests and simulators, which want the same choices every time.
func WithChance(chance func() uint64) Option { return func(o *options) { o.chance = chance } }

func (b BoundedLoad) group() *bounded.Group {
	o := bounded.Options{Every: b.TotalEvery}
	if b.View == ReportedLoad {
		o.View = bounded.Reported
	}
	return bounded.NewGroup(o)
}
