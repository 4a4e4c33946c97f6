// Package test runs the programs as their users do: scripts in
// testdata/script/*.txtar start real processes on free loopback ports and look at
// what they print and how they end. It has no other contents.
package test
