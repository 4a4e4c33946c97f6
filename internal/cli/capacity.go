package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/migrate/capacity"
)

// capacityFlags are the load, the target, and what is asked.
type capacityFlags struct {
	load   capacity.Load
	target capacity.Target
	nodes  int
	pools  []int
}

// capacityAnswer is what capacity says. Times are in seconds.
type capacityAnswer struct {
	Rate       float64 `json:"rate"`
	Service    float64 `json:"service"`
	ServiceCV2 float64 `json:"service_cv2"`
	ArrivalCV2 float64 `json:"arrival_cv2"`
	Workers    int     `json:"workers"`
	// Target is there if one was given.
	Target *capacityTarget `json:"target,omitempty"`
	// Fleet is that asked for with --nodes, or the smallest that meets the target.
	Fleet capacity.Outlook `json:"fleet"`
	// MaxUtilisation is the largest at which so many nodes meet the target.
	MaxUtilisation *float64 `json:"max_utilisation,omitempty"`
	// Pools are the same nodes and requests in separate pools.
	Pools []capacityPool `json:"pools,omitempty"`
}

type capacityTarget struct {
	Wait     float64 `json:"wait"`
	Quantile float64 `json:"quantile,omitempty"`
}

type capacityPool struct {
	Pools int `json:"pools"`
	capacity.Outlook
}

func (a *app) capacityCommand() *cobra.Command {
	var f capacityFlags
	cmd := &cobra.Command{
		Use: "capacity --rate R --service T (--wait T | --nodes N)", Short: "Say how many nodes a load needs, or how long requests wait", Args: cobra.NoArgs,
		Long: `capacity says how many nodes a fleet needs for requests to wait no longer than
--wait, or with --nodes how long they would wait; how far so many nodes may be
loaded; and what the same nodes do in separate pools. It takes a balancer that
sees every request; many clients that see their own alone do worse. Plan for the
busiest minute, without the largest zone.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
				return err
			}
			answer, err := f.answer(cmd.Flags().Changed("wait"))
			if errors.Is(err, capacity.ErrLoad) {
				return usagef("%w", err)
			}
			if err != nil {
				return err
			}
			return a.emit(answer, func(w io.Writer) { capacityTable(w, answer) })
		}}
	s := cmd.Flags()
	s.Float64Var(&f.load.Rate, "rate", 0, "requests a second")
	s.DurationVar(&f.load.Service, "service", 0, "mean time that a request takes without waiting, such as 5ms")
	s.Float64Var(&f.load.ServiceCV2, "service-cv2", 1, "variance of that time over its square: 0 constant, 1 exponential, more for a long tail")
	s.Float64Var(&f.load.ArrivalCV2, "arrival-cv2", 1, "the same for the time between requests; 1 = they come independently")
	s.IntVar(&f.load.Workers, "workers", 1, "requests that a node serves at a time")
	s.DurationVar(&f.target.Wait, "wait", 0, "longest mean wait, or at --quantile")
	s.Float64Var(&f.target.Quantile, "quantile", 0, "share of the requests that wait no longer than --wait, such as 0.99; 0 = the mean")
	s.IntVar(&f.nodes, "nodes", 0, "number of nodes; 0 = as many as --wait needs")
	s.IntSliceVar(&f.pools, "split", nil, "numbers of separate pools to compare with; each must divide the nodes")
	return cmd
}

func (f *capacityFlags) answer(targeted bool) (*capacityAnswer, error) {
	if !targeted && f.nodes == 0 {
		return nil, usagef("give --wait, for the nodes that it needs, or --nodes, for the wait that they have")
	}
	if !targeted && f.target.Quantile != 0 {
		return nil, usagef("--quantile needs --wait: what is waited at p50, p95 and p99 is always shown")
	}
	nodes := f.nodes
	if nodes == 0 {
		var err error
		if nodes, err = f.load.Nodes(f.target); err != nil {
			return nil, err
		}
	}
	o, err := f.load.Outlook(nodes)
	if err != nil {
		return nil, err
	}
	c := &capacityAnswer{Rate: f.load.Rate, Service: f.load.Service.Seconds(), ServiceCV2: f.load.ServiceCV2,
		ArrivalCV2: f.load.ArrivalCV2, Workers: max(1, f.load.Workers), Fleet: o}
	if targeted {
		most, err := f.load.MaxUtilisation(nodes, f.target)
		if err != nil {
			return nil, err
		}
		c.Target, c.MaxUtilisation = &capacityTarget{f.target.Wait.Seconds(), f.target.Quantile}, &most
	}
	return c, f.split(c, nodes)
}

// split adds the pools asked for, by default 2 and 4 where they divide the nodes.
func (f *capacityFlags) split(c *capacityAnswer, nodes int) error {
	pools := f.pools
	if pools == nil {
		for _, k := range []int{2, 4} {
			if nodes%k == 0 && nodes > k {
				pools = append(pools, k)
			}
		}
	}
	for _, k := range pools {
		o, err := f.load.Split(nodes, k)
		if err != nil {
			return err
		}
		c.Pools = append(c.Pools, capacityPool{k, o})
	}
	return nil
}

func capacityTable(w io.Writer, c *capacityAnswer) {
	pairs := []string{"load", fmt.Sprintf("%g requests/s of %s, %d at a time a node", c.Rate, seconds(&c.Service), c.Workers)}
	if t := c.Target; t != nil {
		what := "mean wait"
		if t.Quantile > 0 {
			what = fmt.Sprintf("wait at p%g", 100*t.Quantile)
		}
		pairs = append(pairs, "target", fmt.Sprintf("%s at most %s", what, seconds(&t.Wait)))
	}
	pairs = append(pairs, "nodes", strconv.Itoa(c.Fleet.Nodes))
	if c.MaxUtilisation != nil {
		pairs = append(pairs, "may be used", fmt.Sprintf("%.1f %%", 100**c.MaxUtilisation))
	}
	facts(w, pairs...)
	fmt.Fprintln(w)
	rows := [][]string{{"POOLS", "NODES EACH", "UTILISATION", "WAIT AT ALL", "MEAN WAIT", "P50", "P95", "P99"}}
	for _, p := range append([]capacityPool{{1, c.Fleet}}, c.Pools...) {
		rows = append(rows, []string{strconv.Itoa(p.Pools), strconv.Itoa(p.Nodes), percent(p.Utilisation), percent(p.Waiting),
			seconds(p.MeanWait), seconds(p.P50), seconds(p.P95), seconds(p.P99)})
	}
	columns(w, rows)
}

// seconds writes a time with three digits; nil is without end.
func seconds(x *float64) string {
	switch {
	case x == nil:
		return "no end"
	case *x == 0:
		return "0"
	case *x > 1e6:
		return fmt.Sprintf("%.3gs", *x)
	}
	d := time.Duration(*x * float64(time.Second))
	for unit := time.Duration(1); unit <= d; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.String()
}
