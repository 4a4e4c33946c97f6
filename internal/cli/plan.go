package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// sidesFlags name the two sides of a change.
type sidesFlags struct {
	from, to       string
	fromHow, toHow foreignFlags
}

func (s *sidesFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.from, "from", "", "what is: a cluster file, a saved topology, current, a version such as 2.45, another system's configuration, or redis://HOST:PORT of a Redis Cluster")
	cmd.Flags().StringVar(&s.to, "to", "", "what shall be: the same; a cluster file means the update of --from to it")
	s.fromHow.register(cmd, "from-", "--from")
	s.toHow.register(cmd, "to-", "--to")
}

func (a *app) planCommand() *cobra.Command {
	var sides sidesFlags
	var keys string
	var hexadecimal bool
	var bytesPerKey uint64
	var flows int
	cmd := &cobra.Command{Use: "plan --from A --to B", Short: "Say exactly what a change moves", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if bytesPerKey > 0 && keys == "" {
				return usagef("--bytes-per-key needs --keys: bytes are those of listed keys")
			}
			if bytesPerKey > 1<<40 {
				return usagef("--bytes-per-key %d: want at most %d", bytesPerKey, uint64(1)<<40)
			}
			if flows < -1 {
				return usagef("--flows %d: want -1 (all), 0 (1000) or more", flows)
			}
			p, err := a.plan(cmd.Context(), sides, flows)
			if err != nil {
				return err
			}
			a.warn("from "+p.From.String(), p.From.Table)
			a.warn("to "+p.To.String(), p.To.Table)
			if keys != "" {
				if err := a.countKeys(p, keys, hexadecimal); err != nil {
					return err
				}
				p.BytesPerKey = bytesPerKey
			}
			return a.emit(p, func(w io.Writer) { planTable(w, p) })
		}}
	sides.register(cmd)
	f := cmd.Flags()
	f.StringVar(&keys, "keys", "", "file of keys, one a line, to count besides the share; - = standard input")
	f.BoolVar(&hexadecimal, "keys-hex", false, "the keys are hexadecimal digits")
	f.Uint64Var(&bytesPerKey, "bytes-per-key", 0, "mean size of a key and its value, to print bytes as well")
	f.IntVar(&flows, "flows", 0, "largest number of flows between nodes; 0 = 1000, -1 = all")
	return cmd
}

func (a *app) compareCommand() *cobra.Command {
	var sides sidesFlags
	var traffic trafficFlags
	cmd := &cobra.Command{Use: "compare --from A --to B", Short: "Say what the same change of nodes costs under each algorithm", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := traffic.check(cmd); err != nil {
				return err
			}
			from, to, err := a.sides(cmd.Context(), sides)
			if err != nil {
				return err
			}
			c, err := migrate.Compare(from, to)
			if err != nil {
				return err
			}
			if err := traffic.forecast(a, c, from, to); err != nil {
				return err
			}
			return a.emit(c, func(w io.Writer) { compareTable(w, c) })
		}}
	sides.register(cmd)
	traffic.register(cmd)
	return cmd
}

func (a *app) plan(ctx context.Context, s sidesFlags, flows int) (*migrate.Plan, error) {
	from, to, err := a.sides(ctx, s)
	if err != nil {
		return nil, err
	}
	return migrate.New(from, to, flows)
}

func (a *app) sides(ctx context.Context, s sidesFlags) (from, to migrate.Side, err error) {
	if err = a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return from, to, err
	}
	if s.from == "" || s.to == "" {
		return from, to, usagef("a change has two sides; give both --from and --to")
	}
	c, err := a.client()
	if err != nil {
		return from, to, err
	}
	defer c.Close()
	l := a.loader(&versions{app: a, client: c})
	if l.From, err = s.fromHow.read("from-"); err != nil {
		return from, to, err
	}
	if l.To, err = s.toHow.read("to-"); err != nil {
		return from, to, err
	}
	return l.Sides(ctx, remoteRef(l.From.Format, s.from), remoteRef(l.To.Format, s.to))
}

// warn says on standard error where a foreign mapping hurts.
func (a *app) warn(name string, t *placement.Table) {
	for _, w := range placement.Warnings(t) {
		a.talk("warning: %s: %s; %s", name, w.Message, w.Hint)
	}
}

// loader returns what finds the sides of a plan; v may be nil.
func (a *app) loader(v *versions) migrate.Loader {
	l := migrate.Loader{ReadFile: os.ReadFile, Remote: a.readRedis, Note: func(text string) { a.talk("%s", text) }}
	if v != nil {
		l.Versions = v
	}
	return l
}

// fileRef makes a path that looks like a version or "current" a path.
func fileRef(path string) string {
	if _, err := topology.ParseVersion(path); err == nil || path == migrate.Current {
		return "./" + path
	}
	return path
}

// versions are those of the cluster on the server.
type versions struct {
	app    *app
	client *api.Client
}

func (v *versions) Topology(ctx context.Context, version topology.Version) (*topology.Topology, error) {
	cluster, err := v.app.clusterName(ctx, v.client)
	if err != nil {
		return nil, err
	}
	if version.IsZero() {
		t, _, err := v.client.Topology(ctx, cluster)
		return t, err
	}
	return v.client.TopologyAt(ctx, cluster, version)
}

func (a *app) countKeys(p *migrate.Plan, file string, hexadecimal bool) error {
	keys, done, err := a.keys(nil, file, hexadecimal)
	if err != nil {
		return err
	}
	defer done()
	count, err := migrate.CountKeys(p.From.Table, p.To.Table, keys)
	if err != nil {
		return usagef("%w", err)
	}
	p.Keys = &count
	return nil
}

func describeSide(s migrate.Side) string {
	t := s.Table.Topology()
	text := s.Name
	if s.Published && s.Name != t.Version().String() {
		text += ", version " + t.Version().String()
	}
	return fmt.Sprintf("%s: %d nodes, %s", text, t.Len(), describeSpec(t.Spec()))
}

func planTable(w io.Writer, p *migrate.Plan) {
	r := p.Report
	pairs := []string{"from", describeSide(p.From), "to", describeSide(p.To), "cause", r.Cause,
		"moved", moved(r.Summary), "method", string(r.Method), "peak/mean", peak(p.PeakBefore) + " -> " + peak(p.PeakAfter)}
	if r.Optimal {
		pairs = append(pairs, "optimal", "yes: no other way to these shares moves less")
	}
	if r.Conditional != "" {
		pairs = append(pairs, "holds for", r.Conditional)
	}
	if k := p.Keys; k != nil {
		pairs = append(pairs, "keys", fmt.Sprintf("%d of %d move (%s)", k.Moved, k.Total, percent(k.Ratio)))
		if k.Copies != k.Moved {
			pairs = append(pairs, "copies", strconv.FormatUint(k.Copies, 10))
		}
	}
	if n, ok := p.Bytes(); ok {
		pairs = append(pairs, "bytes", byteSize(n))
	}
	facts(w, pairs...)
	fmt.Fprintln(w)
	nodesTable(w, r)
	flowsTable(w, r)
}

func nodesTable(w io.Writer, r placement.Report) {
	rows := [][]string{{"NODE", "BEFORE", "AFTER", "IN", "OUT"}}
	for _, n := range r.Nodes {
		rows = append(rows, []string{n.ID, percent(n.Before), percent(n.After), percent(n.In), percent(n.Out)})
	}
	columns(w, rows)
}

// shownFlows is the number of flows in a table; -o json has them all.
const shownFlows = 20

func flowsTable(w io.Writer, r placement.Report) {
	if len(r.Flows) == 0 {
		return
	}
	rows := [][]string{{"FROM", "TO", "SHARE"}}
	for _, f := range r.Flows[:min(shownFlows, len(r.Flows))] {
		rows = append(rows, []string{dash(f.From), dash(f.To), percent(f.Share)})
	}
	fmt.Fprintln(w)
	columns(w, rows)
	if more := len(r.Flows) + r.FlowsOmitted - shownFlows; more > 0 {
		fmt.Fprintf(w, "... and %d smaller flows (-o json)\n", more)
	}
}

func compareTable(w io.Writer, c *migrate.Comparison) {
	facts(w, "from", c.From, "to", c.To)
	fmt.Fprintln(w)
	rows := [][]string{{"ALGORITHM", "MOVED", "MINIMUM", "EXCESS", "BETWEEN UNCHANGED", "PEAK BEFORE", "PEAK AFTER", "NOTE"}}
	for _, r := range c.Rows {
		note := r.Note
		if r.Planned {
			note = strings.TrimPrefix("the change as asked for; "+note, "; ")
			note = strings.TrimSuffix(note, "; ")
		}
		row := []string{r.Algorithm, "-", "-", "-", "-", peak(r.PeakBefore), peak(r.PeakAfter), note}
		if m := r.Movement; m != nil {
			row[1], row[2], row[3], row[4] = percent(m.Ratio), percent(m.Minimum), signed(m.Excess), percent(m.BetweenUnchanged)
		}
		rows = append(rows, row)
	}
	columns(w, rows)
	forecastTable(w, c)
}

func byteSize(n uint64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if float64(n) >= unit.size {
			return fmt.Sprintf("%d (%.1f %s)", n, float64(n)/unit.size, unit.name)
		}
	}
	return strconv.FormatUint(n, 10)
}
