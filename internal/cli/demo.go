package cli

import "github.com/spf13/cobra"

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "Publish, follow, route a million keys, add a node, compare algorithms", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return usagef("not built yet") }}
}
