package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

func (a *app) applyCommand() *cobra.Command {
	var file string
	var edit editFlags
	var o applyFlags
	cmd := &cobra.Command{Use: "apply -f FILE", Short: "Declare a cluster as a file says, and publish it", Args: cobra.NoArgs,
		Long: "apply declares spec and nodes of the cluster that the file names, whole, and creates\nthe cluster if it is not there. It prints the version, what moves, and the predicted peak.\nWhat a change would move beforehand: migrate plan --from current --to FILE.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.apply(cmd, file, o, edit) }}
	cmd.Flags().StringVarP(&file, "file", "f", "", "cluster file (YAML or JSON); - = standard input")
	cmd.Flags().StringVar(&o.maxMovement, "max-movement", "", "refuse a change that moves more than this share of the keys, 0 to 1 (exit code 5)")
	cmd.Flags().BoolVar(&o.empty, "empty", false, "allow a file without nodes (nodes: [])")
	edit.register(cmd)
	return cmd
}

// applyFlags say what apply refuses.
type applyFlags struct {
	maxMovement string // share; "" = no limit
	empty       bool
}

func (a *app) apply(cmd *cobra.Command, file string, flags applyFlags, edit editFlags) error {
	if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	if file == "" {
		return usagef("no file; give one with -f (-f - = standard input)")
	}
	d, err := a.readDeclaration(file, flags.empty)
	if err != nil {
		return err
	}
	if a.cluster != "" && a.cluster != d.Cluster {
		return usagef("%s is of cluster %q, but --cluster (or $SHARDD_CLUSTER) says %q", file, d.Cluster, a.cluster)
	}
	o, err := edit.options()
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	o.Empty = flags.empty
	if flags.maxMovement != "" {
		if o.IfMatch, err = a.withinMovement(cmd.Context(), c, d, flags.maxMovement, o.IfMatch); err != nil {
			return err
		}
	}
	r, err := c.PutSpec(cmd.Context(), d, o)
	if err != nil {
		return err
	}
	return a.printEdit(r)
}

// withinMovement works out what declaring d would move, and returns the entity tag
// that holds the edit to what it was worked out from. A new cluster moves nothing.
func (a *app) withinMovement(ctx context.Context, c *api.Client, d topology.Declared, limit string, match api.ETag) (api.ETag, error) {
	most, err := strconv.ParseFloat(limit, 64)
	if err != nil || !(most >= 0 && most <= 1) {
		return match, usagef("--max-movement %s: want a share from 0 to 1, such as 0.25", limit)
	}
	t, tag, err := c.Topology(ctx, d.Cluster)
	switch {
	case errors.Is(err, membership.ErrNoCluster) || errors.Is(err, membership.ErrNoVersion):
		return match, nil
	case err != nil:
		return match, err
	case match != (api.ETag{}) && (match.Generation != tag.Generation || !match.Cluster.IsZero() && match.Cluster != tag.Cluster):
		return match, nil // the server says what is wrong
	}
	report, err := movementTo(t, d)
	if err != nil {
		return match, usagef("%w", err)
	}
	if report.Ratio > most {
		return match, &coded{ExitRefused, fmt.Errorf("%s of the keys would move (%s at least), and --max-movement allows %s; nothing was changed; see migrate plan --from current --to FILE",
			percent(report.Ratio), percent(report.Minimum), percent(most))}
	}
	return tag, nil
}

// movementTo returns what the change from t to d moves.
func movementTo(t *topology.Topology, d topology.Declared) (placement.Report, error) {
	from, err := placement.New(t)
	if err != nil {
		return placement.Report{}, err
	}
	draft := t.Draft()
	draft.Version.Seq++
	draft.Spec, draft.Nodes, draft.Cause = d.Spec, d.Nodes, topology.Cause{}
	to, err := placement.Update(from, draft)
	if err != nil {
		return placement.Report{}, err
	}
	return placement.Movement(from, to)
}

// readDeclaration reads a cluster file, with nodes unless empty allows none.
func (a *app) readDeclaration(name string, empty bool) (topology.Declared, error) {
	b, err := a.readFile(name)
	if err != nil {
		return topology.Declared{}, usagef("%w", err)
	}
	parse := clusterfile.Parse
	if empty {
		parse = clusterfile.ParseEmpty
	}
	d, err := parse(fileName(name), b)
	if err != nil {
		return topology.Declared{}, usagef("%w", err)
	}
	return d, nil
}

// readFile reads a file, or standard input for "-".
func (a *app) readFile(name string) ([]byte, error) {
	if name != "-" {
		return os.ReadFile(name)
	}
	b, err := io.ReadAll(io.LimitReader(a.env.Stdin, 256<<20))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return b, nil
}

func fileName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}
