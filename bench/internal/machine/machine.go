// Package machine says in a few words what a benchmark ran on.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Describe returns the processor, where the system tells it, the number of
// cores, system, architecture and Go version.
func Describe() string {
	return fmt.Sprintf("%s, %d cores, %s/%s, %s", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// processor is the model's name on Linux, the architecture elsewhere.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
