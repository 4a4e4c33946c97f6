// Package resilience is the root of the policies that stand between a caller
// and a fleet of nodes of which some are slow, full, failing or leaving:
//
//	backoff     how long to wait before the next try: full, equal, decorrelated jitter
//	budget      how many retries the requests of a window pay for
//	retry       what may be tried again, and by which layer
//	hedge       a second attempt when the first one is slow
//	breaker     stop calling a node that fails; probe it with few requests
//	throttle    drop a share of the calls in step with what is refused
//	ratelimit   token bucket and leaky bucket, by request or by cost
//	limit       concurrency limits: fixed, AIMD, Vegas, gradient
//	outlier     take the worst nodes out, never more than a stated share
//	slowstart   give a new node its weight little by little
//	drain       let what is in flight finish, refuse what is new
//	probe       look at the failed nodes without user traffic
//	guard       gate, limit, rate and breaker of one node in one admission
//
// # Law
//
// An admission is a value (a ticket), not a closure, and ends in exactly one
// outcome: the first Done counts, a second one by any copy of the ticket
// changes nothing, and an admission whose Done never comes is closed as timed
// out after a limit. Counters are therefore never negative and are zero when
// nothing is in flight.
//
// Time is an argument: now is the time since any fixed origin on a clock that
// does not jump, the same origin for all calls on one value, as time.Since of
// a start gives it. Policies that wait (retry, hedge, probe, drain) use timers
// of package time, which testing/synctest turns into virtual time. Where chance
// takes part it is an argument too, and nil means math/rand/v2. A clock that
// jumps anyway makes windows forget or wait; it makes no counter negative and
// no number NaN.
//
// # Cost
//
// State that requests read is in atomics: no lock on a read path, and no
// allocation between an admission and its Done. What happens seldom (a breaker
// that changes its state, an ejection, a table that grows) may allocate or
// take a mutex.
//
// # What it does not do
//
// The packages know neither topology nor network: they are told outcomes and
// answer with numbers and flags. They import no metrics and no logging.
// Formulas, defaults, sources, measured costs and when not to use each of them
// are in docs/algorithms/resilience.md.
package resilience
