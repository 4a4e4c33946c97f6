package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

func (a *app) applyCommand() *cobra.Command {
	var file string
	var edit editFlags
	cmd := &cobra.Command{Use: "apply -f FILE", Short: "Declare a cluster as a file says, and publish it", Args: cobra.NoArgs,
		Long: "apply declares spec and nodes of the cluster that the file names, whole, and creates\nthe cluster if it is not there. It prints the version, what moves, and the predicted peak.\nWhat a change would move beforehand: migrate plan --from current --to FILE.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.apply(cmd, file, edit) }}
	cmd.Flags().StringVarP(&file, "file", "f", "", "cluster file (YAML or JSON); - = standard input")
	edit.register(cmd)
	return cmd
}

func (a *app) apply(cmd *cobra.Command, file string, edit editFlags) error {
	if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	if file == "" {
		return usagef("no file; give one with -f (-f - = standard input)")
	}
	d, err := a.readClusterFile(file)
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
	r, err := c.PutSpec(cmd.Context(), d, o)
	if err != nil {
		return err
	}
	return a.printEdit(r)
}

func (a *app) readClusterFile(name string) (topology.Declared, error) {
	b, err := a.readFile(name)
	if err != nil {
		return topology.Declared{}, usagef("%w", err)
	}
	d, err := clusterfile.Parse(fileName(name), b)
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
