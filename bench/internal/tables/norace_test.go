//go:build !race

package tables

const raceDetector = false
