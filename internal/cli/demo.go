package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/topology"
)

func (a *app) demoCommand() *cobra.Command {
	keys := 1_000_000
	cmd := &cobra.Command{Use: "demo", Short: "Publish, follow, route a million keys, add a node, compare algorithms", Args: cobra.NoArgs,
		Long: "demo runs the main job on an etcd inside this process: for each algorithm it publishes a\ncluster of three nodes, follows it with the SDK over HTTP, adds a fourth node while a\nmillion keys are being routed, and prints what moved. It fails if a promise is broken.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
				return err
			}
			if keys < 1000 || keys > 100_000_000 {
				return usagef("--keys %d: want 1000 to 100000000", keys)
			}
			return a.demo(cmd.Context(), keys)
		}}
	cmd.Flags().IntVar(&keys, "keys", keys, "number of keys to route")
	return cmd
}

// demoRow is what one algorithm did. Everything in it was measured in this run.
type demoRow struct {
	Algorithm string  `json:"algorithm"`
	Moved     float64 `json:"moved"`   // of the keys routed, counted
	Exact     float64 `json:"exact"`   // of the key space, from the movement report
	Minimum   float64 `json:"minimum"` // least that any mapping must move
	Excess    float64 `json:"excess"`  // Exact - Minimum
	Needless  int     `json:"needless_keys"`
	// PeakBefore and PeakAfter are the largest count of keys on a node
	// divided by the mean.
	PeakBefore float64 `json:"peak_to_mean_before"`
	PeakAfter  float64 `json:"peak_to_mean_after"`
	NSPerRoute float64 `json:"ns_per_route"`
	// TakenMS is the time from sending the edit until lookups went by the
	// new version; 0 for modulo, which nobody publishes.
	TakenMS float64 `json:"publish_to_client_ms,omitempty"`
}

// demoResult is the output of demo.
type demoResult struct {
	Keys  int       `json:"keys"`
	Nodes [2]int    `json:"nodes"` // before and after
	Rows  []demoRow `json:"rows"`
}

func (a *app) demo(ctx context.Context, n int) error {
	began := time.Now()
	dir, err := os.MkdirTemp("", "shardd-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	url, served, err := a.background(ctx, serveFlags{listen: "127.0.0.1:0", dataDir: dir})
	if err != nil {
		return err
	}
	a.talk("shardd with an embedded etcd listens on %s", url)
	result, err := a.demoRows(ctx, url, n)
	stop()
	if err := errors.Join(err, <-served); err != nil {
		return err
	}
	a.talk("%d keys, %d to %d nodes, in %.1f s", result.Keys, result.Nodes[0], result.Nodes[1], time.Since(began).Seconds())
	return a.emit(result, func(w io.Writer) { demoTable(w, result) })
}

// background starts a development server and waits until it listens. The error
// that it ends with comes from served.
func (a *app) background(ctx context.Context, f serveFlags) (url string, served <-chan error, err error) {
	ready := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- a.serveEmbedded(ctx, f, true, a.logger(hclog.Warn), func(url string) { ready <- url })
	}()
	select {
	case url = <-ready:
		return url, ended, nil
	case err = <-ended:
		if err == nil {
			err = context.Cause(ctx)
		}
		return "", nil, err
	}
}

func (a *app) demoRows(ctx context.Context, url string, n int) (demoResult, error) {
	result := demoResult{Keys: n, Nodes: [2]int{len(demoNodes), len(demoNodes) + 1}}
	c, err := api.NewClient(api.ClientConfig{Servers: []string{url}, By: "demo"})
	if err != nil {
		return result, err
	}
	defer c.Close()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "user:" + strconv.Itoa(10_000_000+i)
	}
	result.Rows = append(result.Rows, demoModulo(keys))
	for _, algorithm := range topology.Algorithms() {
		row, err := (&demoRun{client: c, url: url, cluster: "demo-" + string(algorithm), keys: keys}).run(ctx, algorithm)
		if err != nil {
			return result, fmt.Errorf("%s: %w", algorithm, err)
		}
		a.talk("%s: version 1.2 taken %.1f ms after the edit was sent, while routing", algorithm, row.TakenMS)
		result.Rows = append(result.Rows, row)
	}
	return result, nil
}

func demoTable(w io.Writer, r demoResult) {
	rows := [][]string{{"ALGORITHM", "MOVED", "EXACT", "MINIMUM", "EXCESS", "NEEDLESS", "PEAK/MEAN BEFORE", "AFTER", "NS/ROUTE"}}
	for _, d := range r.Rows {
		rows = append(rows, []string{d.Algorithm, percent(d.Moved), percent(d.Exact), percent(d.Minimum), signed(d.Excess),
			percent(float64(d.Needless) / float64(r.Keys)), fmt.Sprintf("%.4f", d.PeakBefore), fmt.Sprintf("%.4f", d.PeakAfter), fmt.Sprintf("%.1f", d.NSPerRoute)})
	}
	columns(w, rows)
	fmt.Fprintln(w, strings.TrimSpace(fmt.Sprintf(`
moved:    of %d keys routed before and after; exact: of the key space, as published with the version
needless: keys that went from one of the three nodes to another of them
ns/route: from key to node with the hash included; under an algorithm, by the SDK's client`, r.Keys)))
}
