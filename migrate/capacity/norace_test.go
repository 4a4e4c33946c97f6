//go:build !race

package capacity_test

const raceDetector = false
