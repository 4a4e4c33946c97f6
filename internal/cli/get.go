package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

func (a *app) getCommand() *cobra.Command {
	return &cobra.Command{Use: "get", Short: "Show the newest version", Args: cobra.NoArgs,
		Long: "get shows the newest published version of a cluster.\n-o yaml writes what is declared as a cluster file, fit for apply; -o topology saves the\nversion with its tables, to be used wherever a file is (route --file, migrate plan).",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.formats(formatTable, formatJSON, formatYAML, formatTopology); err != nil {
				return err
			}
			return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error { return a.get(cmd, c, cluster) })
		}}
}

func (a *app) get(cmd *cobra.Command, c *api.Client, cluster string) error {
	if a.format == formatYAML {
		d, _, err := c.Declared(cmd.Context(), cluster)
		if err != nil {
			return err
		}
		_, err = a.out.Write(clusterfile.Format(d.Declared))
		return writeError(err)
	}
	t, tag, err := c.Topology(cmd.Context(), cluster)
	if err != nil {
		return err
	}
	if a.format == formatTopology {
		b, err := t.MarshalSaved()
		if err != nil {
			return err
		}
		_, err = a.out.Write(b)
		return writeError(err)
	}
	table, err := placement.New(t)
	if err != nil {
		return err
	}
	return a.emit(tagged{t, tag}, func(w io.Writer) { topologyTable(w, table, tag) })
}

// tagged is a topology's JSON view with the entity tag in front.
type tagged struct {
	t   *topology.Topology
	tag api.ETag
}

func (v tagged) MarshalJSON() ([]byte, error) {
	tag, err := json.Marshal(v.tag.String())
	if err != nil {
		return nil, err
	}
	view, err := json.Marshal(v.t)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(`{"etag":`), tag...), append([]byte(","), view[1:]...)...), nil
}

func topologyTable(w io.Writer, table *placement.Table, tag api.ETag) {
	t := table.Topology()
	facts(w, "cluster", t.Cluster()+" ("+t.ClusterID().String()+")",
		"version", t.Version().String(),
		"etag", tag.String(),
		"algorithm", describeSpec(t.Spec()),
		"cause", describeCause(t.Cause()),
		"digest", t.Digest().String(),
		"mapping", t.Mapping().String(),
		"peak/mean", peak(table.Peak()))
	rows := [][]string{{"NODE", "ADDR", "ZONE", "WEIGHT", "STATE", "SHARE"}}
	shares := table.Shares()
	for i, n := range t.Nodes() {
		rows = append(rows, []string{n.ID, dash(n.Addr), dash(n.Zone), strconv.FormatUint(uint64(n.Weight), 10), n.State.String(), percent(shares[i])})
	}
	fmt.Fprintln(w)
	columns(w, rows)
}

func describeSpec(s topology.Spec) string {
	text := string(s.Algorithm)
	switch s.Algorithm {
	case topology.Ring:
		text += fmt.Sprintf(", %d points per unit of weight", s.VNodes)
	case topology.Jump:
		text += fmt.Sprintf(" (%s), %d buckets per unit of weight", s.JumpVariant, s.JumpUnit)
	case topology.Rendezvous:
		if s.RendezvousTable > 0 {
			text += fmt.Sprintf(", table of %d", s.RendezvousTable)
		}
	case topology.Maglev:
		text += fmt.Sprintf(", table of %d", s.TableSize)
	case topology.Slots:
		text += fmt.Sprintf(", %d slots", s.SlotCount)
	}
	if s.Algorithm == topology.Compat {
		text = "as " + describeForeign(s.Compat)
	} else {
		text += "; key hash " + string(s.KeyHash)
	}
	if s.HashTag != "" {
		text += " with tag " + s.HashTag
	}
	text += fmt.Sprintf("; replicas %d", s.Replicas)
	if s.ZoneAware {
		text += " in distinct zones"
	}
	if s.BoundedLoad > 0 {
		text += fmt.Sprintf("; load bound %g", s.BoundedLoad)
	}
	return text
}

// describeForeign names a foreign mapping and what sets it apart.
func describeForeign(f topology.Foreign) string {
	text := string(f.Mode)
	for _, part := range []string{f.Distribution, f.Hash} {
		if part != "" {
			text += ", " + part
		}
	}
	if f.Avalanche {
		text += " avalanche"
	}
	if f.HashTag != "" {
		text += " with tag " + f.HashTag
	}
	if !f.Live() {
		text += " (for planning only)"
	}
	return text
}

func describeCause(c topology.Cause) string {
	text := dash(c.Kind)
	if c.By != "" {
		text += " by " + c.By
	}
	if c.Why != "" {
		text += ": " + c.Why
	}
	return text
}
