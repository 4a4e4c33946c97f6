// Command bench measures this module: `go run ./bench tables` writes the tables
// and plots of docs/algorithms, `go run ./bench sim` plays the policies in virtual
// time. See `go run ./bench --help`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "bench",
		Short:         "measure the algorithms and policies",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newTables(), newSim())
	return root
}
