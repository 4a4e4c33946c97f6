package pickers

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// pin ties the goroutine to one core until it ends. Where that is not allowed it
// stays on its thread.
func pin(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return
	}
}
