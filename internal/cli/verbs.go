package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/topology"
)

func (a *app) historyCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "history", Short: "Show the kept versions: when, what, who, why, what moved", Args: cobra.NoArgs,
		Long: "history shows the kept versions, newest first: the last 64 that changed ownership, and\nthe last 64 of any kind.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
				return err
			}
			if limit < 1 {
				return usagef("--limit %d: want 1 or more", limit)
			}
			return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error {
				h, err := c.History(cmd.Context(), cluster, limit)
				if err != nil {
					return err
				}
				return a.emit(h, func(w io.Writer) { historyTable(w, h) })
			})
		}}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many, 1 to 128")
	return cmd
}

func historyTable(w io.Writer, h api.History) {
	rows := [][]string{{"VERSION", "WHEN", "NODES", "MOVED", "BY", "CAUSE", "WHY"}}
	for _, v := range h.Versions {
		share := "-"
		if v.Moved {
			share = percent(v.Ratio)
		}
		rows = append(rows, []string{v.Version.String(), when(v.Cause.At), strconv.Itoa(v.Nodes), share, dash(v.Cause.By), dash(v.Cause.Kind), dash(v.Cause.Why)})
	}
	columns(w, rows)
	if h.Omitted > 0 {
		fmt.Fprintf(w, "%d older ones are kept; see --limit\n", h.Omitted)
	}
}

// when writes milliseconds since 1970 in UTC.
func when(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

func parseVersionArg(what, text string) (topology.Version, error) {
	v, err := topology.ParseVersion(text)
	if err != nil || v.IsZero() {
		return v, usagef("%s %q: want EPOCH.SEQ, such as 1.17; see shardd history", what, text)
	}
	return v, nil
}

func (a *app) rollbackCommand() *cobra.Command {
	var edit editFlags
	cmd := &cobra.Command{Use: "rollback VERSION", Short: "Declare spec and nodes of a kept version again, as a new version", Args: cobra.ExactArgs(1),
		Long: "rollback publishes a new version with the spec and the nodes of a kept one; versions\nnever go back. Every key is mapped as then, unless that was in the middle of a ramp, or\nregistered nodes have come or gone since, for they stay what they are now: then tables of\nslots, maglev and jump are filled anew from the present ones.",
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := parseVersionArg("version", args[0])
			if err != nil {
				return err
			}
			return a.doEdit(cmd, edit, func(ctx context.Context, c *api.Client, cluster string, o api.EditOptions) (api.EditResult, error) {
				return c.Rollback(ctx, cluster, v, o)
			})
		}}
	edit.register(cmd)
	return cmd
}

// doEdit runs one edit and prints what it did.
func (a *app) doEdit(cmd *cobra.Command, edit editFlags, fn func(context.Context, *api.Client, string, api.EditOptions) (api.EditResult, error)) error {
	if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	o, err := edit.options()
	if err != nil {
		return err
	}
	return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error {
		r, err := fn(cmd.Context(), c, cluster, o)
		if err != nil {
			return err
		}
		return a.printEdit(r)
	})
}

func (a *app) epochCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "epoch", Short: "Begin an epoch after a store went back", RunE: noVerb}
	var edit editFlags
	var body api.BumpRequest
	var shown string
	bump := &cobra.Command{Use: "bump", Short: "Raise the epoch, so that all clients go forward again", Args: cobra.NoArgs,
		Long: "bump raises the epoch of a cluster whose store was restored from a backup or copied: its\nfirst version has the contents of the present head, and every client takes it. It is\nrefused where nothing shows that the store went back.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if shown != "" {
				epoch, err := savedEpoch(shown)
				if err != nil {
					return err
				}
				body.Above = max(body.Above, epoch)
			}
			return a.doEdit(cmd, edit, func(ctx context.Context, c *api.Client, cluster string, o api.EditOptions) (api.EditResult, error) {
				return c.Bump(ctx, cluster, body, o)
			})
		}}
	f := bump.Flags()
	f.Uint64Var(&body.Above, "above", 0, "an epoch that some client holds and the new one has to be above of")
	f.StringVar(&shown, "shown", "", "a saved topology or a client's snapshot file that the new epoch has to be above of")
	f.BoolVar(&body.Force, "force", false, "raise it though nothing shows that the store went back")
	edit.register(bump)
	cmd.AddCommand(bump)
	return cmd
}

func savedEpoch(name string) (uint64, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, usagef("--shown: %w", err)
	}
	t, err := topology.UnmarshalSaved(b)
	if err != nil {
		return 0, usagef("--shown: %s: %w", name, err)
	}
	return t.Version().Epoch, nil
}

func (a *app) freezeCommand(freeze bool) *cobra.Command {
	use, short := "freeze", "Publish nothing, and refuse edits, until unfreeze"
	if !freeze {
		use, short = "unfreeze", "Let edits be published again"
	}
	var edit editFlags
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
				return err
			}
			o := api.EditOptions{Why: edit.why, By: edit.by}
			return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error {
				call := c.Unfreeze
				if freeze {
					call = c.Freeze
				}
				f, err := call(cmd.Context(), cluster, o)
				if err != nil {
					return err
				}
				return a.emit(f, func(w io.Writer) { frozenTable(w, f) })
			})
		}}
	edit.registerNote(cmd)
	return cmd
}

func frozenTable(w io.Writer, f api.Frozen) {
	state := "not frozen"
	if f.Frozen {
		state = "frozen"
		if f.By != "" {
			state += " by " + f.By
		}
		if f.Why != "" {
			state += ": " + f.Why
		}
	}
	facts(w, "cluster", f.Cluster, "state", state, "version", versionText(f.Version), "pending edits", strconv.FormatUint(f.Pending, 10))
}

func (a *app) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "List, create and delete clusters", RunE: noVerb}
	list := &cobra.Command{Use: "list", Short: "List the clusters", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return a.listClusters(cmd) }}
	cmd.AddCommand(list, a.clusterCreateCommand(), a.clusterDeleteCommand())
	return cmd
}

func (a *app) listClusters(cmd *cobra.Command) error {
	if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := c.Clusters(cmd.Context())
	if err != nil {
		return err
	}
	return a.emit(all, func(w io.Writer) {
		rows := [][]string{{"CLUSTER", "VERSION", "NODES", "ID"}}
		for _, e := range all.Clusters {
			rows = append(rows, []string{e.Name, versionText(e.Version), strconv.Itoa(e.Nodes), e.ClusterID.String()})
		}
		columns(w, rows)
	})
}

func (a *app) clusterCreateCommand() *cobra.Command {
	var file string
	var edit editFlags
	var o applyFlags
	cmd := &cobra.Command{Use: "create -f FILE", Short: "Create the cluster that a file declares; refused if it is there", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			edit.create = true
			return a.apply(cmd, file, o, edit)
		}}
	cmd.Flags().StringVarP(&file, "file", "f", "", "cluster file (YAML or JSON); - = standard input")
	cmd.Flags().BoolVar(&o.empty, "empty", false, "allow a file without nodes (nodes: [])")
	edit.registerNote(cmd)
	return cmd
}

func (a *app) clusterDeleteCommand() *cobra.Command {
	var yes string
	cmd := &cobra.Command{Use: "delete NAME --yes NAME", Short: "Delete a cluster with all its versions", Args: cobra.ExactArgs(1),
		Long: "delete removes a cluster with all its versions. Its clients go on with what they have;\na cluster of the same name made later is another one, and they refuse it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if yes != args[0] {
				return &coded{ExitRefused, fmt.Errorf("cluster %s is deleted with all its versions only if its name is given once more: --yes %s", args[0], args[0])}
			}
			return a.deleteCluster(cmd.Context(), args[0])
		}}
	cmd.Flags().StringVar(&yes, "yes", "", "the cluster's name once more")
	return cmd
}

func (a *app) deleteCluster(ctx context.Context, name string) error {
	if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := c.Clusters(ctx)
	if err != nil {
		return err
	}
	for _, e := range all.Clusters {
		if e.Name == name {
			if err := c.DeleteCluster(ctx, name, name, e.ClusterID); err != nil {
				return err
			}
			a.talk("cluster %s (%s) is deleted", name, e.ClusterID)
			return a.emit(e, func(io.Writer) {})
		}
	}
	return fmt.Errorf("there is no cluster %q; see: shardd cluster list", name)
}
