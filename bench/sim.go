package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/shardd/shardd/bench/internal/experiment"
)

// errFailed says that figures are not what was expected.
var errFailed = errors.New("figures are not as expected; see the rows marked FAILED")

// simFlags are the flags of all experiments.
type simFlags struct {
	env    experiment.Env
	params experiment.Params
	format string
	plot   string
	docs   string
}

func newSim() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim NAME|all",
		Short: "play the policies in virtual time",
		Long: `sim plays this module's policies in virtual time, prints what it measured and what
is known from theory, papers and other simulators, and exits with status 1 if a
figure is not as expected. The same seed gives the same output.

What is expected belongs to the set-up, which is what the flags have without being
given. With less --units or --seeds figures scatter more than the tolerance allows
for, --quick or not; with other parameters there mostly is nothing to compare with.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no experiment; see: bench sim --help")
			}
			return fmt.Errorf("unknown experiment %q; see: bench sim --help", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	p := c.PersistentFlags()
	p.StringVarP(&f.format, "output", "o", experiment.Table, "form of the output: table, json or csv")
	p.StringVar(&f.plot, "plot", "", "directory to draw plots into, as SVG and PNG")
	p.StringVar(&f.docs, "docs", "", "directory of the pages whose blocks to write, docs/algorithms")
	p.BoolVar(&f.env.Quick, "quick", false, "shorter runs, with twice the tolerance")
	p.Uint64Var(&f.env.Seed, "seed", 1, "seed of the first run; 0 is 1")
	p.IntVar(&f.env.Workers, "workers", 0, "runs at once; 0 = as many as there are processors")
	for _, x := range experiment.All() {
		c.AddCommand(f.one(x))
	}
	c.AddCommand(f.all())
	return c
}

// one is the command of an experiment, with the flags that it uses.
func (f *simFlags) one(x *experiment.Experiment) *cobra.Command {
	var own experiment.Params
	c := &cobra.Command{
		Use: x.Name, Short: x.About, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := given(c.Flags(), own); err != nil {
				return err
			}
			for _, name := range []string{"seeds", "units"} {
				if c.Flags().Changed(name) && !slices.Contains(x.Uses, name) {
					fmt.Fprintf(c.ErrOrStderr(), "note: %s has no use for --%s\n", x.Name, name)
				}
			}
			f.params = own
			return f.play(c, []*experiment.Experiment{x})
		},
	}
	for _, name := range x.Uses {
		f.flag(c.Flags(), &own, name, x.Defaults)
	}
	for _, name := range []string{"seeds", "units"} { // what runs all experiments need not know which
		if !slices.Contains(x.Uses, name) {
			f.flag(c.Flags(), &own, name, x.Defaults)
			_ = c.Flags().MarkHidden(name) // it is there
		}
	}
	return c
}

// given refuses flags that were given as nothing: zero values are the set-up's.
func given(s *pflag.FlagSet, p experiment.Params) error {
	for name, none := range map[string]bool{
		"n": len(p.N) == 0, "lambda": len(p.Lambda) == 0, "T": len(p.T) == 0, "tau": len(p.Tau) == 0, "m": len(p.M) == 0,
		"c": len(p.C) == 0, "policies": len(p.Policies) == 0, "seeds": p.Seeds == 0, "units": p.Units == 0,
	} {
		if none && s.Changed(name) {
			return fmt.Errorf("%w: --%s is given and empty or 0; leave it out for the set-up's", experiment.ErrParam, name)
		}
	}
	return nil
}

func (f *simFlags) flag(s *pflag.FlagSet, p *experiment.Params, name string, d experiment.Params) {
	switch name {
	case "n":
		s.IntSliceVar(&p.N, name, d.N, "servers, or what the experiment has n of; a list plays each")
	case "lambda":
		s.Float64SliceVar(&p.Lambda, name, d.Lambda, "utilisations")
	case "T":
		s.Float64SliceVar(&p.T, name, d.T, "ages of loads, in service times")
	case "tau":
		s.Float64SliceVar(&p.Tau, name, d.Tau, "decays of latency estimates, in service times")
	case "m":
		s.IntSliceVar(&p.M, name, d.M, "numbers of clients")
	case "c":
		s.Float64SliceVar(&p.C, name, d.C, "load bounds")
	case "policies":
		s.StringSliceVar(&p.Policies, name, d.Policies, "policies")
	case "seeds":
		s.IntVar(&p.Seeds, name, d.Seeds, "runs of which the median is taken")
	case "units":
		s.Float64Var(&p.Units, name, d.Units, "time in which requests are counted, in service times")
	case "from-empty":
		s.BoolVar(&f.env.FromEmpty, name, false, "follow the queues from empty servers on, 60 runs of 30 units, beside the differential equations")
	}
}

func (f *simFlags) all() *cobra.Command {
	var own experiment.Params
	c := &cobra.Command{
		Use: "all", Short: "every experiment", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := given(c.Flags(), own); err != nil {
				return err
			}
			f.params = own
			return f.play(c, experiment.All())
		},
	}
	c.Flags().IntVar(&own.Seeds, "seeds", 0, "runs of which the median is taken, where there is chance (default: each set-up's)")
	c.Flags().Float64Var(&own.Units, "units", 0, "time in which requests are counted, in the experiments that have that flag (default: each set-up's)")
	return c
}

// envOf is what x is run with.
func (f *simFlags) envOf(x *experiment.Experiment) experiment.Env {
	env := f.env
	env.Params, env.Seed = f.params, f.env.Seed
	if !slices.Contains(x.Uses, "seeds") {
		env.Seeds = 0
	}
	if !slices.Contains(x.Uses, "units") {
		env.Units = 0
	}
	return env
}

// check finds what can be wrong before anything is played.
func (f *simFlags) check(list []*experiment.Experiment) error {
	if err := experiment.Write(io.Discard, f.format, nil); err != nil {
		return err
	}
	if info, err := os.Stat(f.plot); f.plot != "" && err == nil && !info.IsDir() {
		return fmt.Errorf("%w: --plot %s: not a directory", experiment.ErrParam, f.plot)
	}
	for _, x := range list {
		if err := x.Check(f.envOf(x)); err != nil {
			return err
		}
		if f.docs == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(f.docs, x.Page)); err != nil {
			return fmt.Errorf("%w: --docs: %w", experiment.ErrParam, err)
		}
	}
	return nil
}

// play plays experiments and writes their rows.
func (f *simFlags) play(c *cobra.Command, list []*experiment.Experiment) error {
	if err := f.check(list); err != nil {
		return err
	}
	var rows []experiment.Row
	pictures := map[string]experiment.Picture{}
	for _, x := range list {
		part, err := f.playOne(c.Context(), c.ErrOrStderr(), x)
		if err != nil {
			return err
		}
		rows = append(rows, part...)
		if f.docs != "" {
			if err := document(f.docs, x, part); err != nil {
				return err
			}
		}
		if x.Plot != nil {
			for name, p := range x.Plot(part) {
				pictures[name] = p
			}
		}
		if f.format == experiment.Table {
			if err := experiment.Write(c.OutOrStdout(), f.format, part); err != nil {
				return err
			}
		}
		if less := x.Shorter(f.envOf(x)); less != "" && verdict(part) != nil {
			fmt.Fprintf(c.ErrOrStderr(), "note: %s was played with %s: less than what its tolerances are for\n", x.Name, less)
		}
	}
	if f.format != experiment.Table {
		if err := experiment.Write(c.OutOrStdout(), f.format, rows); err != nil {
			return err
		}
	}
	if err := drawAll(f.plot, pictures); err != nil {
		return err
	}
	return verdict(rows)
}

func (f *simFlags) playOne(ctx context.Context, stderr io.Writer, x *experiment.Experiment) ([]experiment.Row, error) {
	env := f.envOf(x)
	bar := newBar(stderr, x.Name)
	defer bar.end()
	env.Progress = bar.at
	return x.Play(ctx, env)
}

func verdict(rows []experiment.Row) error {
	for i := range rows {
		if !rows[i].OK() {
			return errFailed
		}
	}
	return nil
}

// drawAll writes the pictures into dir, if one is given.
func drawAll(dir string, pictures map[string]experiment.Picture) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, p := range pictures {
		svg, err := p.SVG()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		png, err := p.PNG()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for ext, raw := range map[string][]byte{".svg": svg, ".png": png} {
			if err := os.WriteFile(filepath.Join(dir, name+ext), raw, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
