package floorbench

import (
	"syscall"
	"time"
)

// cpuTime is the time that the calling thread has been running. The thread must
// be locked to the goroutine.
func cpuTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
