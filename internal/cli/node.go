package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/topology"
)

func (a *app) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Add, remove, weigh, drain, replace or forget one node", RunE: noVerb}
	cmd.AddCommand(a.nodeAddCommand(), a.nodeRemoveCommand(), a.nodeWeightCommand(),
		a.nodePlainCommand("drain", api.VerbDrain, "Let a node give up its keys; it stays, and undrain undoes it"),
		a.nodePlainCommand("undrain", api.VerbUndrain, "Let a draining node have keys again"),
		a.nodePlainCommand("forget", api.VerbForget, "Remove a node that owns nothing any more"),
		a.nodeReplaceCommand())
	return cmd
}

func (a *app) nodeAddCommand() *cobra.Command {
	var edit editFlags
	var node api.NodeEdit
	var weight string
	cmd := &cobra.Command{Use: "add ID", Short: "Add a node", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if weight != "" {
				w, err := parseWeight("--weight", weight)
				if err != nil {
					return err
				}
				node.Weight = &w
			}
			return a.editNode(cmd, args[0], api.VerbAdd, node, edit)
		}}
	f := cmd.Flags()
	f.StringVar(&node.Addr, "addr", "", "where the node is, such as 10.0.0.4:11211")
	f.StringVar(&node.Zone, "zone", "", "failure domain")
	f.StringVar(&node.Label, "label", "", "what a foreign system hashes in place of the address")
	f.StringVar(&weight, "weight", "", "share relative to the other nodes, 0 to 1000000; 0 = owns nothing; default 1, under go-zero 100")
	rampFlag(cmd, &node)
	edit.register(cmd)
	return cmd
}

func (a *app) nodeRemoveCommand() *cobra.Command {
	var edit editFlags
	cmd := &cobra.Command{Use: "remove ID", Short: "Remove a node at once; its keys go to the others", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editNode(cmd, args[0], api.VerbRemove, api.NodeEdit{}, edit)
		}}
	edit.register(cmd)
	return cmd
}

func (a *app) nodeWeightCommand() *cobra.Command {
	var edit editFlags
	var node api.NodeEdit
	cmd := &cobra.Command{Use: "weight ID WEIGHT", Short: "Set a node's weight; 0 = it owns nothing", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := parseWeight("weight", args[1])
			if err != nil {
				return err
			}
			node.Weight = &w
			return a.editNode(cmd, args[0], api.VerbWeight, node, edit)
		}}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		// A negative weight looks like a flag.
		if _, text, ok := strings.Cut(err.Error(), " in -"); ok {
			if _, bad := strconv.ParseFloat(text, 64); bad == nil {
				_, err = parseWeight("weight", "-"+text)
			}
		}
		return err
	})
	rampFlag(cmd, &node)
	edit.register(cmd)
	return cmd
}

// rampFlag registers the flag of verbs whose change of owners can be made in
// steps.
func rampFlag(cmd *cobra.Command, node *api.NodeEdit) {
	cmd.Flags().StringVar(&node.Ramp, "ramp", "", "let the keys change owners in 16 steps over this time, such as 5m; hand = by shardd ramp step; now = make what is left of a ramp at once")
}

func parseWeight(what, text string) (uint32, error) {
	w, err := strconv.ParseUint(text, 10, 32)
	if err != nil || w > topology.MaxWeight {
		return 0, usagef("%s %q: want a whole number from 0 to %d", what, text, topology.MaxWeight)
	}
	return uint32(w), nil
}

func (a *app) editNode(cmd *cobra.Command, id string, verb api.Verb, node api.NodeEdit, edit editFlags) error {
	if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	if err := topology.ValidateNodeID(id); err != nil {
		return usagef("%w", err)
	}
	o, err := edit.options()
	if err != nil {
		return err
	}
	return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error {
		r, err := c.EditNode(cmd.Context(), cluster, id, verb, node, o)
		if err != nil {
			return err
		}
		return a.printEdit(r)
	})
}

func (a *app) nodePlainCommand(name string, verb api.Verb, short string) *cobra.Command {
	var edit editFlags
	var node api.NodeEdit
	cmd := &cobra.Command{Use: name + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editNode(cmd, args[0], verb, node, edit)
		}}
	if verb != api.VerbForget {
		rampFlag(cmd, &node)
	}
	edit.register(cmd)
	return cmd
}

func (a *app) nodeReplaceCommand() *cobra.Command {
	var edit editFlags
	var node api.NodeEdit
	cmd := &cobra.Command{Use: "replace ID NEW-ID", Short: "Put another node in the place of one; where the algorithm allows it, only that node's keys move", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := topology.ValidateNodeID(args[1]); err != nil {
				return usagef("%w", err)
			}
			node.By = args[1]
			return a.editNode(cmd, args[0], api.VerbReplace, node, edit)
		}}
	f := cmd.Flags()
	f.StringVar(&node.Addr, "addr", "", "where the new node is, such as 10.0.0.4:11211")
	f.StringVar(&node.Zone, "zone", "", "its failure domain; default that of the old one")
	f.StringVar(&node.Label, "label", "", "what a foreign system hashes in place of the address")
	edit.register(cmd)
	return cmd
}
