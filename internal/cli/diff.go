package cli

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// diffView is the output of diff.
type diffView struct {
	From     topology.Version `json:"from"`
	To       topology.Version `json:"to"`
	Spec     []string         `json:"spec,omitempty"` // of From and To, where they differ
	Nodes    []nodeDiff       `json:"nodes"`
	Movement placement.Report `json:"movement"`
}

type nodeDiff struct {
	ID     string         `json:"id"`
	Change string         `json:"change"` // added, removed, changed
	From   *topology.Node `json:"from,omitempty"`
	To     *topology.Node `json:"to,omitempty"`
}

func (a *app) diffCommand() *cobra.Command {
	return &cobra.Command{Use: "diff A B", Short: "Show what differs between two kept versions, and what moves", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
				return err
			}
			var versions [2]topology.Version
			for i, arg := range args {
				v, err := parseVersionArg("version", arg)
				if err != nil {
					return err
				}
				versions[i] = v
			}
			return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error {
				var tables [2]*placement.Table
				for i, v := range versions {
					t, err := c.TopologyAt(cmd.Context(), cluster, v)
					if err != nil {
						return err
					}
					if tables[i], err = placement.New(t); err != nil {
						return err
					}
				}
				d, err := diff(tables[0], tables[1])
				if err != nil {
					return err
				}
				return a.emit(d, func(w io.Writer) { diffTable(w, d) })
			})
		}}
}

func diff(from, to *placement.Table) (diffView, error) {
	f, t := from.Topology(), to.Topology()
	d := diffView{From: f.Version(), To: t.Version(), Nodes: nodeDiffs(f, t)}
	if f.Spec() != t.Spec() {
		d.Spec = []string{describeSpec(f.Spec()), describeSpec(t.Spec())}
	}
	var err error
	d.Movement, err = placement.Movement(from, to)
	return d, err
}

// nodeDiffs merges two lists that are sorted by id.
func nodeDiffs(f, t *topology.Topology) []nodeDiff {
	diffs := []nodeDiff{}
	a, b := f.Nodes(), t.Nodes()
	for len(a) > 0 || len(b) > 0 {
		var order int
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = strings.Compare(a[0].ID, b[0].ID)
		}
		switch {
		case order < 0:
			diffs = append(diffs, nodeDiff{a[0].ID, "removed", &a[0], nil})
		case order > 0:
			diffs = append(diffs, nodeDiff{b[0].ID, "added", nil, &b[0]})
		case a[0] != b[0]:
			diffs = append(diffs, nodeDiff{a[0].ID, "changed", &a[0], &b[0]})
		}
		if order <= 0 {
			a = a[1:]
		}
		if order >= 0 {
			b = b[1:]
		}
	}
	return diffs
}

func diffTable(w io.Writer, d diffView) {
	facts(w, "from", d.From.String(), "to", d.To.String(), "moved", moved(d.Movement.Summary))
	if d.Spec != nil {
		facts(w, "spec before", d.Spec[0], "spec after", d.Spec[1])
	}
	for _, n := range d.Nodes {
		switch n.Change {
		case "added":
			fmt.Fprintf(w, "+ %s\n", nodeText(*n.To))
		case "removed":
			fmt.Fprintf(w, "- %s\n", nodeText(*n.From))
		default:
			fmt.Fprintf(w, "- %s\n+ %s\n", nodeText(*n.From), nodeText(*n.To))
		}
	}
}

func nodeText(n topology.Node) string {
	return fmt.Sprintf("%s addr %s weight %d zone %s state %s", n.ID, dash(n.Addr), n.Weight, dash(n.Zone), n.State)
}

func (a *app) explainCommand() *cobra.Command {
	var at string
	var hexed bool
	cmd := &cobra.Command{Use: "explain KEY", Short: "Say where a key belongs, since when, and why", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
				return err
			}
			var v topology.Version
			var err error
			if at != "" {
				if v, err = parseVersionArg("--at", at); err != nil {
					return err
				}
			}
			key := []byte(args[0])
			if hexed {
				if key, err = hex.DecodeString(args[0]); err != nil {
					return usagef("key %q is not hexadecimal: %w", args[0], err)
				}
			}
			return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error {
				e, err := c.Explain(cmd.Context(), cluster, key, v)
				if err != nil {
					return err
				}
				return a.emit(e, func(w io.Writer) { explainTable(w, args[0], e) })
			})
		}}
	cmd.Flags().StringVar(&at, "at", "", "a kept version, such as 1.17; default the newest")
	cmd.Flags().BoolVar(&hexed, "key-hex", false, "the key is given as hexadecimal digits")
	return cmd
}

func explainTable(w io.Writer, key string, e api.Explain) {
	pairs := []string{"key", key, "version", e.Version.String(), "cause", describeCause(e.Cause), "hash", e.Hash}
	if e.Slot != nil {
		pairs = append(pairs, "slot", fmt.Sprint(*e.Slot))
	}
	for i, n := range e.Nodes {
		name := "owner"
		if i > 0 {
			name = fmt.Sprintf("replica %d", i)
		}
		pairs = append(pairs, name, nodeText(n))
	}
	since := e.Since.String() + " or before"
	if m := e.Moved; m != nil {
		since = fmt.Sprintf("%s, from %s (%s)", m.Version, dash(m.From), describeCause(m.Cause))
	}
	facts(w, append(pairs, "owned since", since)...)
}
