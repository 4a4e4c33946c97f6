package experiment

import (
	"math"
	"time"

	"github.com/shardd/shardd/balance/wrr"
	"github.com/shardd/shardd/bench/sim"
)

// meter is the servers' half of gRPC's weighted_round_robin: requests a second
// and utilisation, averaged exponentially over smooth.
type meter struct {
	sim     *sim.Sim
	smooth  float64
	servers []metered
}

type metered struct {
	served     int
	busy       time.Duration
	at         time.Duration
	weight     float64 // of the past, in time
	qps, using float64
}

func newMeter(s *sim.Sim, n int, smooth time.Duration) *meter {
	return &meter{s, float64(smooth), make([]metered, n)}
}

// read returns a server's averages at now.
func (m *meter) read(i int) wrr.Load {
	v := &m.servers[i]
	now, served, busy := m.sim.Now(), m.sim.Served(i), m.sim.Busy(i)
	dt := float64(now - v.at)
	if dt == 0 {
		return wrr.Load{QPS: v.qps, Utilization: v.using}
	}
	keep := v.weight * math.Exp(-dt/m.smooth)
	v.qps = (v.qps*keep + float64(served-v.served)*float64(time.Second)) / (keep + dt)
	v.using = (v.using*keep + float64(busy-v.busy)) / (keep + dt)
	v.weight, v.at, v.served, v.busy = keep+dt, now, served, busy
	return wrr.Load{QPS: v.qps, Utilization: v.using}
}
