//go:build !race

package balancetest

const raceEnabled = false
