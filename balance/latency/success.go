package latency

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
	"github.com/shardd/shardd/internal/splitmix"
)

// SuccessConfig configures Success. Kratos and GoZero return the settings of
// those libraries.
type SuccessConfig struct {
	// Decay is the time in which lag and success rate forget by e; above 0.
	Decay time.Duration
	// Base is added to the lag before the square root is taken.
	Base time.Duration
	// Default is the lag assumed before the first answer; above 0.
	Default time.Duration
	// Force is the time after which a node that lost all comparisons gets a
	// request nevertheless; 0 is off.
	Force time.Duration
	// ByRate divides the cost by the success rate.
	ByRate bool
	// Healthy is the success rate, 0..1, above which a node counts as healthy; a
	// pair with an unhealthy node is drawn again, up to three pairs in all. 0 is
	// off.
	Healthy float64
	// Predict takes the mean age of the requests in flight that are older than
	// the lag, if they are more than half, in place of the lag.
	Predict bool
}

// Kratos returns the settings of go-kratos' selector/p2c with its EWMA node.
func Kratos() SuccessConfig {
	return SuccessConfig{
		Decay: 600 * time.Millisecond, Base: 5 * time.Millisecond, Default: 10 * time.Second,
		Force: 3 * time.Second, ByRate: true, Predict: true,
	}
}

// GoZero returns the settings of go-zero's p2c_ewma. Its new nodes start with
// lag 0 and take everything until their first answer (its penalty for that case
// cannot be reached); here they start at 100 ms.
func GoZero() SuccessConfig {
	return SuccessConfig{
		Decay: 10 * time.Second, Base: 1, Default: 100 * time.Millisecond,
		Force: time.Second, Healthy: 0.5,
	}
}

// predictEvery is how long a prediction is used.
const predictEvery = 5 * time.Millisecond

// Success is P2C over the cost
//
//	sqrt(lag + Base) * (in flight + 1), divided by the success rate if ByRate
//
// where lag and success rate are averages over time, a sample weighing 1 -
// e^(-dt/Decay). The square root makes it lean on requests in flight more than
// PeakEWMA does. Bad outcomes lower the success rate; that, and not the cost of
// waiting, is what keeps a node that fails fast from drawing the requests.
// Source: go-kratos selector/node/ewma, go-zero zrpc/internal/balancer/p2c.
//
// Force sends a request to a node however unwell it is: with n nodes and a Force
// of 1 s, n requests a second may end on such nodes.
type Success struct {
	cfg   SuccessConfig
	set   *balance.Set
	state []*record
}

// record is what is known of a node.
type record struct {
	lag, rate  decay.Value
	picked     atomic.Int64  // time of the last pick
	predicted  atomic.Uint64 // bits of the predicted lag, 0 for none
	predictDue atomic.Int64
	_          [128 - 2*16 - 3*8]byte
}

// NewSuccess returns the picker over set. Settings out of range are refused
// with balance.ErrInvalid.
func NewSuccess(set *balance.Set, cfg SuccessConfig) (*Success, error) {
	if cfg.Decay <= 0 || cfg.Default <= 0 || cfg.Base < 0 || cfg.Force < 0 || !(cfg.Healthy >= 0 && cfg.Healthy < 1) {
		return nil, balance.Invalidf("latency: SuccessConfig%+v: Decay and Default must be above 0, Healthy in [0, 1) and nothing negative", cfg)
	}
	return newSuccess(set, cfg, nil, nil), nil
}

func newSuccess(set *balance.Set, cfg SuccessConfig, was []*record, from []int) *Success {
	s := &Success{cfg: cfg, state: make([]*record, set.Len())}
	for i := range s.state {
		if from != nil && from[i] >= 0 {
			s.state[i] = was[from[i]]
			continue
		}
		r := new(record)
		r.lag.Init(0)
		r.rate.Init(1)
		r.picked.Store(math.MinInt64)
		s.state[i] = r
	}
	s.set = set.Observed(s)
	return s
}

// Next returns the picker over set; nodes that stay keep their records.
func (s *Success) Next(set *balance.Set) (balance.Picker, error) {
	return newSuccess(set, s.cfg, s.state, set.From(s.set)), nil
}

// Set returns the set the picker was made of.
func (s *Success) Set() *balance.Set { return s.set }

// Pick returns the better one of two, or the other one if it is due.
func (s *Success) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	dice := splitmix.Source(seed)
	var a, b int
	for try := 0; ; try++ {
		var err error
		if a, b, err = s.set.Pair(&dice, exclude); err != nil {
			return balance.Ticket{}, err
		}
		if b < 0 || try == 2 || s.healthy(a) && s.healthy(b) {
			break
		}
	}
	if b >= 0 {
		if s.cost(b, now) < s.cost(a, now) {
			a, b = b, a
		}
		if s.due(b, now) {
			a = b
		}
	}
	s.state[a].picked.Store(int64(now))
	return s.set.Take(a, now), nil
}

func (s *Success) healthy(i int) bool {
	return s.cfg.Healthy == 0 || s.state[i].rate.Raw() > s.cfg.Healthy
}

// due tells whether node i must get a request; of several at once one gets it.
// Its first time starts with the first comparison.
func (s *Success) due(i int, now time.Duration) bool {
	if s.cfg.Force == 0 {
		return false
	}
	picked := &s.state[i].picked
	at := picked.Load()
	if at == math.MinInt64 || int64(now) < at {
		picked.CompareAndSwap(at, int64(now))
		return false
	}
	return decay.Elapsed(time.Duration(at), now) > s.cfg.Force && picked.CompareAndSwap(at, int64(now))
}

func (s *Success) cost(i int, now time.Duration) float64 {
	r := s.state[i]
	lag := r.lag.Raw()
	if lag == 0 {
		lag = float64(s.cfg.Default)
	} else if s.cfg.Predict {
		lag = max(lag, s.predict(i, lag, now))
	}
	cost := math.Sqrt(lag+float64(s.cfg.Base)) * float64(s.set.Node(i).InFlight()+1)
	if s.cfg.ByRate {
		cost /= max(0.001, r.rate.Raw())
	}
	return cost
}

// predict returns the lag to expect from the requests in flight, 0 for none. It
// is made anew every predictEvery, by whoever finds it old.
func (s *Success) predict(i int, lag float64, now time.Duration) float64 {
	r := s.state[i]
	due := r.predictDue.Load()
	if (int64(now) >= due || due > int64(now+predictEvery)) && r.predictDue.CompareAndSwap(due, int64(now+predictEvery)) {
		node := s.set.Node(i)
		late, mean := node.OlderThan(now, time.Duration(lag))
		if late <= node.InFlight()/2 {
			mean = 0
		}
		r.predicted.Store(math.Float64bits(float64(mean)))
	}
	return math.Float64frombits(r.predicted.Load())
}

// Observe takes lag and success of a request; Ignored ones are passed over.
func (s *Success) Observe(i int, start, now time.Duration, o balance.Outcome) {
	if o.Result == balance.Ignored {
		return
	}
	r := s.state[i]
	took := max(1, float64(decay.Elapsed(start, now)))
	ok := 1.0
	if o.Result.Bad() {
		ok = 0
	}
	if r.lag.Raw() == 0 { // the first answer counts in full
		r.lag.Set(now, took)
		r.rate.Set(now, ok)
		return
	}
	r.lag.Mean(now, s.cfg.Decay, took)
	r.rate.Mean(now, s.cfg.Decay, ok)
}
