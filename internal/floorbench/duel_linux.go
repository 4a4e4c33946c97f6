package floorbench

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// lane is what one goroutine of a duel tells the other, on lines of its own.
type lane struct {
	_          [128]byte
	at         atomic.Int64 // how many barriers it has reached
	begun, end atomic.Int64
	_          [128]byte
}

// Duel runs f(core, round) on two goroutines at once, each on a processor of its own,
// 0 and 1, and returns the times of the rounds that both were there for, from the
// first begin to the last end. A round in which one began or ended without the other,
// because the machine did something else, does not count: so it measures what two
// cores cost each other, also on a machine that is busy. It needs two processors.
func Duel(rounds int, f func(core, round int)) (took []time.Duration) {
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
				f(c, r)
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
