//go:build race

package balancetest

// RaceEnabled tells whether the race detector is on, under which long tests without
// concurrency may be left out.
const RaceEnabled = true
