package outlier

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("outlier: bad config")

// Defaults of Config, those of Envoy's outlier detection.
const (
	DefaultConsecutive = 5
	DefaultInterval    = 10 * time.Second
	DefaultBase        = 30 * time.Second
	DefaultMax         = 300 * time.Second
	DefaultLimit       = 0.1
	DefaultPanic       = 0.5
	DefaultStdev       = 1.9
	DefaultMinNodes    = 5
	DefaultMinRequests = 100
)

// Config says who is an outlier, for how long, and how many may be. The zero
// Config is the default.
type Config struct {
	// Consecutive ejects a node at once after so many bad outcomes without a
	// success between; 0 means DefaultConsecutive (5), negative switches it off.
	Consecutive int
	// Stdev ejects, once an Interval, nodes whose share of successes is below
	// mean - Stdev * standard deviation of all nodes' shares; 0 means
	// DefaultStdev (1.9), negative switches it off.
	Stdev float64
	// FailureShare ejects, once an Interval, nodes whose share of bad
	// outcomes is at least this, in (0, 1]; 0 means off, as in Envoy, whose
	// threshold is 0.85.
	FailureShare float64
	// MinRequests is the outcomes in an Interval under which Stdev and
	// FailureShare leave a node alone; 0 means DefaultMinRequests (100).
	MinRequests int
	// MinNodes is the nodes with MinRequests under which Stdev and
	// FailureShare judge nobody; 0 means DefaultMinNodes (5).
	MinNodes int
	// Interval is the time between two judgements; 0 means DefaultInterval (10 s).
	Interval time.Duration
	// Base times the node's ejections of late is how long it stays out, at
	// most Max; 0 means DefaultBase (30 s) and DefaultMax (300 s, or Base if
	// that is longer).
	Base, Max time.Duration
	// Jitter adds up to this at random to each ejection, so that not all
	// clients take a node back at once; 0 means none.
	Jitter time.Duration
	// Limit is the share of the nodes that may be ejected or down, (0, 1];
	// 0 means DefaultLimit (0.1), with which fewer than ten nodes never lose
	// one: say 0.34 for three.
	Limit float64
	// Panic is the share of nodes left under which ejections and health are
	// ignored and all nodes used; 0 means the smaller of DefaultPanic (0.5,
	// Envoy) and 1 - Limit, with which ejection alone never leads there;
	// negative means only when none is left.
	Panic float64
	// Rand returns chance in [0, 1) for Jitter; nil means rand.Float64 of math/rand/v2.
	Rand func() float64
	// OnChange is called after each ejection and return by the goroutine that
	// made it, without a lock held, so that two of them may come out of
	// order; nil means nobody is told.
	OnChange func(Event)
}

// Reason is why a node was ejected or taken back.
type Reason uint8

// The reasons.
const (
	Consecutive  Reason = iota // ejected: bad outcomes in a row
	SuccessRate                // ejected: Config.Stdev
	FailureShare               // ejected: Config.FailureShare
	TimeOver                   // back: its time is over
	Returned                   // back: Node.Return
	MakeRoom                   // back: the limit fell, or others went down
	WentDown                   // back: it went down or out itself, or was removed
)

// String returns the reason in lower case and kebab case.
func (r Reason) String() string {
	names := [...]string{"consecutive", "success-rate", "failure-share", "time-over", "returned", "make-room", "went-down"}
	if int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}

// Event is one ejection or return.
type Event struct {
	Node    *Node
	Ejected bool
	Reason  Reason
	At      time.Duration // now of the call that made it
	For     time.Duration // how long it will stay out; 0 for a return
}

func (c *Config) fill() error {
	def(&c.Consecutive, DefaultConsecutive)
	def(&c.Stdev, DefaultStdev)
	def(&c.MinRequests, DefaultMinRequests)
	def(&c.MinNodes, DefaultMinNodes)
	def(&c.Interval, DefaultInterval)
	def(&c.Base, DefaultBase)
	def(&c.Max, max(DefaultMax, c.Base))
	def(&c.Limit, DefaultLimit)
	def(&c.Panic, min(DefaultPanic, 1-c.Limit))
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	switch {
	case !(c.Limit > 0 && c.Limit <= 1):
		return fmt.Errorf("%w: limit %v: want more than 0, at most 1", ErrConfig, c.Limit)
	case !(c.Panic <= 1):
		return fmt.Errorf("%w: panic %v: want at most 1", ErrConfig, c.Panic)
	case !(c.FailureShare >= 0 && c.FailureShare <= 1):
		return fmt.Errorf("%w: failure share %v: want 0 to 1", ErrConfig, c.FailureShare)
	case math.IsNaN(c.Stdev):
		return fmt.Errorf("%w: stdev is not a number", ErrConfig)
	case c.MinRequests < 0 || c.MinNodes < 0:
		return fmt.Errorf("%w: min requests %d, min nodes %d: want 0 or more", ErrConfig, c.MinRequests, c.MinNodes)
	case c.Interval < 0 || c.Base < 0 || c.Max < c.Base || c.Jitter < 0:
		return fmt.Errorf("%w: interval %v, base %v, max %v, jitter %v: want 0 or more, base at most max",
			ErrConfig, c.Interval, c.Base, c.Max, c.Jitter)
	}
	return nil
}

// def gives a field its default when it is 0.
func def[T comparable](field *T, value T) {
	if zero := *new(T); *field == zero {
		*field = value
	}
}
