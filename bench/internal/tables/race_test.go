//go:build race

package tables

const raceDetector = true
