// Command bench measures this module: `go run ./bench tables` writes the tables
// and plots of docs/algorithms, `go run ./bench sim` plays the policies in virtual
// time. See `go run ./bench --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/bench/internal/experiment"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := execute(ctx, newRoot(), os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs a command and returns its exit code: 1 for what was tried and did not
// work, or not as expected, 2 for what cannot be done as asked.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bench:", err)
	if !started || errors.Is(err, experiment.ErrParam) {
		return 2
	}
	return 1
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
