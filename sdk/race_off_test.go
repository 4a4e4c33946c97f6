//go:build !race

package sdk

const underRace = false
