package floorbench

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the time that the calling thread has been running. The thread must
// be locked to the goroutine. getrusage would not do: it counts ticks.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
