// Package loadreport lets a server tell its clients how loaded it is, in the answers
// that it gives anyway, and in answers to probes.
//
//	load := loadreport.New(loadreport.Config{})
//	http.Handle("/", load.Middleware(app))
//	http.Handle("/loadz", load.ProbeHandler())
//	load.Set("queue_depth", 12) // any value that the server knows
//
// A [Server] counts requests in flight and their cost, requests and errors a second,
// the processor's use, and the latency that requests had which began with as many
// others in flight. Package loadreport/grpcreport does the same for gRPC.
//
// # Law
//
// What is in flight is never negative, and 0 when nothing is: each request is counted
// once, whatever its handler does (a panic included). A report in an answer does not
// count the request that it answers, so that a client adds its own.
//
// # Wire form
//
// The names are those of ORCA, Open Request Cost Aggregation: over HTTP the header
// endpoint-load-metrics in its TEXT form (JSON and BIN are read, too), over gRPC the
// trailer endpoint-load-metrics-bin with xds.data.orca.v3.OrcaLoadReport. What ORCA
// has no field for stands among the named metrics: in_flight, latency_seconds,
// service_seconds.
//
// # Cost
//
// A request with its report costs some microseconds (BenchmarkRequest) and a header of
// about 100 bytes. CPU is read from the
// operating system at most once a second, and by whoever makes a report then.
//
// # Source
//
// ORCA: gRPC proposals A51 (custom backend metrics) and A58, Envoy's orca_parser.
// Latency by level in flight, and probes that ask for both: Wydrowski and others,
// "Load is not what you should balance: Introducing Prequal" (NSDI 2024), section 5.
//
// # What it does not do
//
// It limits nothing (package resilience/limit does) and stores no history. The
// processor's use is that of this process, not of the machine, and of Unix only.
package loadreport
