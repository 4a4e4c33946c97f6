package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
)

// app is one run of a program: its surroundings, global flags and output.
type app struct {
	env     Env
	out     *bufio.Writer
	started bool // cobra has accepted flags and arguments

	servers  []string
	cluster  string
	timeout  time.Duration
	format   string
	logLevel string
	logJSON  bool
}

// Shardd runs the shardd program and returns its exit code.
func Shardd(ctx context.Context, env Env, args []string) int {
	a := newApp(env)
	root := &cobra.Command{Use: "shardd", Short: "Versioned topologies for fleets of caches and sharded servers",
		Long: "shardd keeps the membership of clusters in etcd and publishes versioned topologies,\nby which clients route keys on their own. Begin with: shardd dev"}
	root.RunE = noVerb
	a.globalFlags(root)
	root.AddCommand(a.serveCommand(), a.devCommand(), a.applyCommand(), a.getCommand(), a.watchCommand(), a.routeCommand(), a.nodeCommand(), a.rampCommand(), a.historyCommand(), a.diffCommand(), a.explainCommand(), a.rollbackCommand(), a.freezeCommand(true), a.freezeCommand(false), a.epochCommand(), a.clusterCommand(), a.agentCommand(), a.demoCommand(), a.importCommand(), a.exportCommand())
	return a.run(ctx, root, args)
}

// Migrate runs the migrate program and returns its exit code.
func Migrate(ctx context.Context, env Env, args []string) int {
	a := newApp(env)
	root := &cobra.Command{Use: "migrate", Short: "What a change of a cluster moves, before it is made", RunE: noVerb}
	a.globalFlags(root)
	root.AddCommand(a.planCommand(), a.compareCommand(), a.capacityCommand())
	return a.run(ctx, root, args)
}

// noVerb is what a command does that only has verbs under it.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown command %q for %q; see: %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return usagef("no command; see: %s --help", cmd.CommandPath())
}

func newApp(env Env) *app { return &app{env: env, out: bufio.NewWriterSize(env.Stdout, 64<<10)} }

func (a *app) globalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringSliceVar(&a.servers, "server", nil, "address of a shardd, or several; default $SHARDD_SERVER, else "+api.DefaultAddr)
	f.StringVar(&a.cluster, "cluster", "", "name of the cluster; default $SHARDD_CLUSTER, else the only one that the server has")
	f.DurationVar(&a.timeout, "timeout", api.DefaultTimeout, "how long a server has to answer")
	f.StringVarP(&a.format, "output", "o", formatTable, "form of the output: table, json or yaml; get also writes topology, which saves the version")
	f.StringVar(&a.logLevel, "log-level", "", "least level of log lines on standard error: trace, debug, info, warn, error or off; default info for servers, else warn")
	f.BoolVar(&a.logJSON, "log-json", false, "log lines as JSON")
}

func (a *app) run(ctx context.Context, root *cobra.Command, args []string) int {
	program := root.Name()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		a.started = true
		return a.checkGlobals()
	}
	if args == nil {
		args = []string{} // nil would mean os.Args
	}
	root.SetArgs(args)
	root.SetIn(a.env.Stdin)
	root.SetOut(a.out)
	root.SetErr(a.env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if flushed := a.out.Flush(); err == nil {
		err = writeError(flushed)
	}
	if err != nil && !a.started {
		err = usagef("%w; see: %s --help", err, cmd.CommandPath())
	}
	return report(a.env, program, err)
}

func (a *app) checkGlobals() error {
	if a.timeout <= 0 {
		return usagef("--timeout %s: want more than 0", a.timeout)
	}
	if a.logLevel != "" && hclog.LevelFromString(a.logLevel) == hclog.NoLevel {
		return usagef("--log-level %q: want trace, debug, info, warn, error or off", a.logLevel)
	}
	if len(a.servers) == 0 {
		a.servers = strings.FieldsFunc(a.env.Getenv("SHARDD_SERVER"), func(r rune) bool { return r == ',' || r == ' ' })
	}
	if a.cluster == "" {
		a.cluster = a.env.Getenv("SHARDD_CLUSTER")
	}
	return nil
}

// formats returns a check of -o for commands that know some forms only.
func (a *app) formats(known ...string) error {
	if !slices.Contains(known, a.format) {
		return usagef("--output %q: want %s", a.format, strings.Join(known, ", "))
	}
	return nil
}

// logger returns a logger on standard error, of this level unless the user chose
// another.
func (a *app) logger(level hclog.Level) hclog.Logger {
	if a.logLevel != "" {
		level = hclog.LevelFromString(a.logLevel)
	}
	return hclog.New(&hclog.LoggerOptions{Name: "shardd", Level: level, Output: a.env.Stderr, JSONFormat: a.logJSON})
}

// talk writes one line to standard error.
func (a *app) talk(format string, args ...any) { fmt.Fprintf(a.env.Stderr, format+"\n", args...) }
