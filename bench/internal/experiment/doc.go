// Package experiment has the experiments of `go run ./bench sim`: each plays
// the policies of this module in package sim's virtual time, prints what it
// measured, and says whether that is what is known from theory, from papers or
// from independent simulators of the same set-up.
//
// An experiment re-implements no policy. What it brings itself is what stands
// around one: servers, loads that are shown late, keys, caches, faults.
package experiment
