//go:build !linux

package pickers

import "runtime"

// pin keeps the goroutine on its thread; the system places that.
func pin(int) { runtime.LockOSThread() }
