package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
)

func (a *app) rampCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ramp", Short: "Show a change of owners that is made in steps, or step it, turn it back, finish it",
		Long: "ramp shows how a change of owners stands that is made in steps, as node add, weight, drain\nand undrain begin one with --ramp. While one is under way, edits that would change other\nowners are refused, and new members wait.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noVerb(cmd, args)
			}
			return a.showRamp(cmd)
		}}
	cmd.AddCommand(a.rampStepCommand(),
		a.rampVerbCommand(api.RampBack, "Let the steps turn back to what was before; a node that was being added drains then"),
		a.rampVerbCommand(api.RampForward, "Let steps that turn back go forward again"),
		a.rampVerbCommand(api.RampFinish, "Make all steps that are left at once"))
	return cmd
}

func (a *app) showRamp(cmd *cobra.Command) error {
	if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error {
		r, err := c.Ramp(cmd.Context(), cluster)
		if err != nil {
			return err
		}
		return a.emit(r, func(w io.Writer) { rampTable(w, r) })
	})
}

func rampTable(w io.Writer, r api.Ramp) {
	facts(w, "version", versionText(r.Version), "ramp", describeRamp(r))
	if !r.UnderWay {
		return
	}
	rows := [][]string{{"NODE", "BEFORE", "AFTER"}}
	for _, n := range r.Nodes {
		rows = append(rows, []string{n.ID, strconv.FormatUint(uint64(n.Before), 10), strconv.FormatUint(uint64(n.After), 10)})
	}
	fmt.Fprintln(w)
	columns(w, rows)
}

// describeRamp says how a ramp stands on one line.
func describeRamp(r api.Ramp) string {
	if !r.UnderWay {
		return "none"
	}
	text := fmt.Sprintf("%d of %d steps", r.Moved, r.Steps)
	if r.Back {
		text += ", turning back"
	}
	if r.Over == "" {
		return text + ", by hand"
	}
	return text + ", over " + r.Over + " in all"
}

func (a *app) rampStepCommand() *cobra.Command {
	var edit editFlags
	var back bool
	cmd := &cobra.Command{Use: "step [N]", Short: "Make the next N steps at once (1 if it is not said), or take some back", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			steps := 1
			if len(args) > 0 {
				n, err := strconv.Atoi(args[0])
				if err != nil || n < 1 || n > membership.RampSteps {
					return usagef("steps %q: want a whole number from 1 to %d", args[0], membership.RampSteps)
				}
				steps = n
			}
			if back {
				steps = -steps
			}
			return a.editRamp(cmd, edit, api.RampStep, api.RampEdit{Steps: &steps})
		}}
	cmd.Flags().BoolVar(&back, "back", false, "the other way than the steps go; the first step stays: ramp back turns that back, too")
	edit.register(cmd)
	return cmd
}

func (a *app) rampVerbCommand(verb api.RampVerb, short string) *cobra.Command {
	var edit editFlags
	cmd := &cobra.Command{Use: string(verb), Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.editRamp(cmd, edit, verb, api.RampEdit{}) }}
	edit.register(cmd)
	return cmd
}

func (a *app) editRamp(cmd *cobra.Command, edit editFlags, verb api.RampVerb, e api.RampEdit) error {
	return a.doEdit(cmd, edit, func(ctx context.Context, c *api.Client, cluster string, o api.EditOptions) (api.EditResult, error) {
		return c.EditRamp(ctx, cluster, verb, e, o)
	})
}
