package sdk_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// BenchmarkAcquireCores compares the throughput of two cores that do nothing but
// acquire and end requests on one client, with that of one core: x-one-core is the
// ratio of the best rounds, with an exact total and one that lags by 32.
//
// The two goroutines have a processor each and begin and end a round together, or
// the round does not count: so it measures sharing, also on a machine that does
// other work.
//
//	go test -run '^$' -bench Cores -benchtime 1000x ./sdk
func BenchmarkAcquireCores(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("wants two processors")
	}
	for _, every := range []int{1, 32} {
		b.Run(fmt.Sprintf("bounded/every=%d", every), func(b *testing.B) {
			c, keys := benchClient(b, topology.Spec{Algorithm: topology.Ring, BoundedLoad: 1.25}, 100, sdk.WithBoundedLoad(sdk.BoundedLoad{TotalEvery: every}))
			ctx := b.Context()
			benchCores(b, func(at int) {
				for _, k := range keys[at : at+2000] {
					t, _ := c.Acquire(ctx, k, 1)
					t.Done(sdk.Success)
				}
			})
		})
	}
	b.Run("route", func(b *testing.B) {
		c, keys := benchClient(b, topology.Spec{Algorithm: topology.Ring}, 100)
		benchCores(b, func(at int) {
			for _, k := range keys[at : at+2000] {
				r, _ := c.Route(k)
				if r.ID() == "" {
					panic("no node")
				}
			}
		})
	})
}

func benchCores(b *testing.B, loop func(at int)) {
	var alone []time.Duration
	for r := range 3 * b.N {
		start := time.Now()
		loop(r * 2000 % 60_000)
		alone = append(alone, time.Since(start))
	}
	b.ResetTimer()
	both := duel(b.N, loop)
	b.ReportMetric(0, "ns/op")
	if len(both) == 0 {
		return
	}
	slices.Sort(alone)
	slices.Sort(both)
	b.ReportMetric(float64(len(both)), "rounds")
	b.ReportMetric(2*float64(alone[len(alone)/20])/float64(both[len(both)/20]), "x-one-core")
	b.ReportMetric(float64(alone[len(alone)/20])/2000, "ns/pick")
}

// lane is what one goroutine of a duel tells the other, on lines of its own.
type lane struct {
	_          [128]byte
	at         atomic.Int64 // how many barriers it has reached
	begun, end atomic.Int64
	_          [128]byte
}

// duel runs f on two pinned goroutines at once and returns the times of the
// rounds that both were there for, from the first begin to the last end.
func duel(rounds int, f func(at int)) (took []time.Duration) {
	var lanes [2]lane
	origin := time.Now()
	done := make(chan bool, 2)
	meet := func(c int, barrier int64) {
		lanes[c].at.Store(barrier)
		for lanes[1-c].at.Load() < barrier {
		}
	}
	for c := range 2 {
		go func() {
			pin(c)
			for r := range rounds {
				meet(c, int64(2*r+1))
				lanes[c].begun.Store(int64(time.Since(origin)))
				f((r*2000 + c*30_000) % 60_000)
				lanes[c].end.Store(int64(time.Since(origin)))
				meet(c, int64(2*r+2))
				if d, ok := together(&lanes[0], &lanes[1]); ok && c == 0 {
					took = append(took, d)
				}
			}
			done <- true
		}()
	}
	<-done
	<-done
	return took
}

// together returns how long a round took, and whether the two were beside each
// other from its beginning to its end.
func together(a, b *lane) (time.Duration, bool) {
	begun := max(a.begun.Load(), b.begun.Load()) - min(a.begun.Load(), b.begun.Load())
	end := max(a.end.Load(), b.end.Load()) - min(a.end.Load(), b.end.Load())
	all := max(a.end.Load(), b.end.Load()) - min(a.begun.Load(), b.begun.Load())
	return time.Duration(all), begun < 2000 && end < all/5
}

// pin ties the goroutine to a processor until it ends.
func pin(cpu int) {
	runtime.LockOSThread()
	var mask [16]uint64
	mask[0] = 1 << cpu
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask[0])))
}
