// Package faults breaks things under running clients and looks at what they see:
// three members of etcd (Debian's etcd-server) and two shardd as processes of
// their own on loopback, clients of the SDK over etcd and over HTTP that route all
// the time, and an editor that makes a version every 100 ms.
//
// # Law
//
// Whatever is killed, frozen, stopped, compacted or restored: the versions at a
// client only go forward along one chain, no two of them have the same number and
// different contents, routing never fails, and all clients come to the newest
// version soon after the fault is over.
//
// # Running
//
// The tests make each experiment once. Repeated, with percentiles of the times:
//
//	go test ./test/faults -run Percentiles -v -timeout 2h -args -runs 20 -outage 10s
//
// The package has only tests; docs/ops/faults.md has figures.
package faults
