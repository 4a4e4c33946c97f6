//go:build unix

package loadreport

import (
	"runtime"
	"syscall"
	"time"
)

// processTime returns what getrusage says of this process.
func processTime() (time.Duration, float64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), float64(runtime.GOMAXPROCS(0))
}
