package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/topology"
)

func (a *app) watchCommand() *cobra.Command {
	var count int
	cmd := &cobra.Command{Use: "watch", Short: "Print versions as they come", Args: cobra.NoArgs,
		Long: "watch prints a line for the newest version and for every later one, until it is\ninterrupted. It follows as any client does: never back, through lost connections; versions\nthat come in quick succession may be taken together.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.formats(formatTable, formatJSON); err != nil {
				return err
			}
			if count < 0 {
				return usagef("--count %d: want 0 or more", count)
			}
			return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error { return a.watch(cmd.Context(), c, cluster, count) })
		}}
	cmd.Flags().IntVar(&count, "count", 0, "end after so many versions; 0 = never")
	return cmd
}

func (a *app) watch(ctx context.Context, c *api.Client, cluster string, count int) error {
	changes, stop, err := a.follow(ctx, c, cluster)
	if err != nil {
		return err
	}
	defer stop()
	return a.printChanges(ctx, changes, count)
}

// follow returns the newest version and later ones as a client takes them, until
// stop is called.
func (a *app) follow(ctx context.Context, c *api.Client, cluster string) (_ <-chan sdk.Change, stop func(), err error) {
	// Asked once, so that a wrong address or name is an error at once rather
	// than something to wait for.
	if _, _, err := c.Topology(ctx, cluster); err != nil && !errors.Is(err, membership.ErrNoVersion) {
		return nil, nil, err
	}
	servers := a.servers
	if len(servers) == 0 {
		servers = []string{api.DefaultAddr}
	}
	source, err := httpsource.New(cluster, servers, httpsource.WithTimeout(a.timeout))
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	client, err := sdk.New(source, sdk.WithLogger(a.logger(hclog.Warn)))
	if err != nil {
		return nil, nil, err
	}
	changes, stopped := make(chan sdk.Change), make(chan struct{})
	cancel := client.OnChange(func(change sdk.Change) {
		select {
		case changes <- change:
		case <-ctx.Done():
		case <-stopped:
		}
	})
	return changes, func() {
		close(stopped)
		cancel()
		client.Close()
	}, nil
}

// printChanges ends with ctx, which is how a watch usually ends, or after count
// changes.
func (a *app) printChanges(ctx context.Context, changes <-chan sdk.Change, count int) error {
	var last *placement.Table
	for n := 0; count == 0 || n < count; n++ {
		var change sdk.Change
		select {
		case <-ctx.Done():
			return nil
		case change = <-changes:
		}
		table, err := placement.Next(last, change.To)
		if err != nil {
			return err
		}
		if err := a.printChange(last, table); err != nil {
			return err
		}
		last = table
	}
	return nil
}

// versionLine is one line of watch in JSON.
type versionLine struct {
	Cluster  string             `json:"cluster"`
	Version  topology.Version   `json:"version"`
	Previous topology.Version   `json:"previous"` // what this watch printed before; 0.0 = nothing
	Digest   topology.Digest    `json:"digest"`
	Nodes    int                `json:"nodes"`
	Cause    topology.Cause     `json:"cause"`
	Movement *placement.Summary `json:"movement,omitempty"` // from Previous
	Peak     float64            `json:"peak_to_mean,omitempty"`
}

func (a *app) printChange(last, table *placement.Table) error {
	t := table.Topology()
	v := versionLine{Cluster: t.Cluster(), Version: t.Version(), Digest: t.Digest(), Nodes: t.Len(), Cause: t.Cause(), Peak: table.Peak()}
	if last != nil {
		r, err := placement.Movement(last, table)
		if err != nil {
			return err
		}
		v.Previous, v.Movement = last.Topology().Version(), &r.Summary
	}
	if a.format == formatJSON {
		if err := json.NewEncoder(a.out).Encode(v); err != nil {
			return writeError(err)
		}
		return writeError(a.out.Flush())
	}
	line := fmt.Sprintf("%s\t%d nodes\t%s", v.Version, v.Nodes, describeCause(v.Cause))
	if v.Movement != nil {
		line += "\tmoved " + moved(*v.Movement)
	}
	fmt.Fprintf(a.out, "%s\tpeak/mean %s\n", line, peak(v.Peak))
	return writeError(a.out.Flush())
}
