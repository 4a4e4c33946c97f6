package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/bench/internal/peertable"
	"github.com/shardd/shardd/bench/internal/tables"
)

// tablesFlags are the flags of bench tables.
type tablesFlags struct {
	docs, peers  string
	quick, exact bool
}

func newTables() *cobra.Command {
	var f tablesFlags
	c := &cobra.Command{
		Use:   "tables",
		Short: "write the figures and plots of docs/algorithms",
		Long: `tables computes how evenly the algorithms spread keys and what changes move,
runs bench/peers for the speed of this module's packages and of other libraries,
and writes all of it into the marked blocks of the pages. Run it from the root
of the repository, on a machine that has nothing else to do; it takes about a
quarter of an hour.

With --quick it writes nothing and fails if a figure that does not depend on the
machine is not what the page says.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runTables(c, f) },
	}
	c.Flags().StringVar(&f.docs, "docs", "docs/algorithms", "directory of the pages")
	c.Flags().StringVar(&f.peers, "peers", "", "take what was measured from this file, made by `go run -C bench/peers . -o json`")
	c.Flags().BoolVar(&f.quick, "quick", false, "check the pages and write nothing")
	c.Flags().BoolVar(&f.exact, "exact", false, "write the figures that do not depend on the machine only")
	c.MarkFlagsMutuallyExclusive("quick", "exact", "peers")
	return c
}

func runTables(c *cobra.Command, f tablesFlags) error {
	progress := func(what string) { fmt.Fprintln(c.ErrOrStderr(), what) }
	if f.quick {
		return tables.Check(f.docs, tables.All, progress)
	}
	if f.exact {
		return tables.Write(f.docs, nil, progress)
	}
	raw, err := measured(c.Context(), f.peers)
	if err != nil {
		return err
	}
	var r peertable.Report
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("what bench/peers measured: %w", err)
	}
	return tables.Write(f.docs, &r, progress)
}

// measured is the file's contents, or without a file what bench/peers measures
// now.
func measured(ctx context.Context, file string) ([]byte, error) {
	if file != "" {
		return os.ReadFile(file)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "run", "-C", "bench/peers", ".", "-o", "json")
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go run -C bench/peers: %w", err)
	}
	return out.Bytes(), nil
}
