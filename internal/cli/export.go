package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/placement"
)

// exportFlags say what is written and where.
type exportFlags struct {
	format  string
	file    string
	how     foreignFlags // of file
	out     string
	watch   bool
	exec    string
	timeout time.Duration
	options foreign.ExportOptions
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{Use: "export --format FORMAT", Short: "Write the mapping as another system's configuration", Args: cobra.NoArgs,
		Long: "export writes the newest version, or --file, as another system's configuration. Formats:\n" + foreign.Names(foreign.Writable()) + ".\nA mapping that the target does not compute is refused, with what can be done. What is written\nis read back and compared first, where import knows the format. mcrouter: nodes only, for its\nhash is its own; redis-cli: the commands that give masters their slots.\n\nWith --watch the file follows the cluster: it is written beside --out, checked, and moved into\nplace, only when its contents change; then --exec runs, without a shell: its words are split at\nblanks, quotes keep them together. It has $SHARDD_FILE, $SHARDD_CLUSTER and $SHARDD_VERSION. A\ncommand that fails is tried again until it succeeds. Each change that is done is a line of\nstandard output: version, tab, file. A version that cannot be exported leaves\nthe file as it is.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.export(cmd, f) }}
	fl := cmd.Flags()
	fl.StringVar(&f.format, "format", "", "format: "+foreign.Names(foreign.Writable()))
	fl.StringVarP(&f.file, "file", "f", "", "export a cluster file (its first publication), a saved topology or another system's configuration instead")
	f.how.register(cmd, "file-", "--file")
	fl.StringVar(&f.out, "out", "", "write to this file, atomically; default standard output")
	fl.BoolVar(&f.watch, "watch", false, "go on, and write again whenever the contents change; needs --out")
	fl.StringVar(&f.exec, "exec", "", "command to run after each change of the file, such as \"nginx -s reload\"; not a shell")
	fl.DurationVar(&f.timeout, "exec-timeout", 30*time.Second, "how long the command may take")
	fl.StringVar(&f.options.Name, "name", "", "name of the pool, upstream, backend or cluster; default the cluster's")
	fl.StringVar(&f.options.Key, "key", "", "what is hashed of a request: nginx, default $request_uri; haproxy, what stands behind balance, default hdr(x-key)")
	fl.StringArrayVar(&f.options.Lines, "line", nil, "further line of the pool, upstream or backend, such as \"redis: true\"; may be repeated")
	return cmd
}

func (a *app) export(cmd *cobra.Command, f exportFlags) error {
	if err := a.formats(formatTable); err != nil {
		return err
	}
	switch {
	case f.format == "":
		return usagef("--format: want one of %s", foreign.Names(foreign.Writable()))
	case f.watch && (f.out == "" || f.file != ""):
		return usagef("--watch follows the cluster into a file; give --out and no --file")
	case f.exec != "" && f.out == "":
		return usagef("--exec runs when a file has changed; give --out")
	case f.timeout <= 0:
		return usagef("--exec-timeout %s: want more than 0", f.timeout)
	}
	k, err := a.exporter(f)
	if err != nil {
		return err
	}
	if f.watch {
		return a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error { return k.follow(cmd.Context(), c, cluster) })
	}
	table, err := a.routeTable(cmd, f.file, f.how)
	if err != nil {
		return err
	}
	return k.once(cmd.Context(), table)
}

// exporter keeps a file as a mapping has it.
type exporter struct {
	app     *app
	format  foreign.Format
	options foreign.ExportOptions
	out     string
	command []string // run after each change; empty = none
	timeout time.Duration
	due     bool // the command has not succeeded since the last change
	fresh   bool // the file has changed and nobody was told
}

func (a *app) exporter(f exportFlags) (*exporter, error) {
	k := &exporter{app: a, format: foreign.Format(f.format), options: f.options, out: f.out, timeout: f.timeout}
	if f.exec == "" {
		return k, nil
	}
	var err error
	if k.command, err = splitCommand(f.exec); err != nil {
		return nil, usagef("--exec: %w", err)
	}
	if _, err := exec.LookPath(k.command[0]); err != nil {
		return nil, usagef("--exec: %w (its first word is the program; there is no shell)", err)
	}
	return k, nil
}

// once exports table to standard output or the file.
func (k *exporter) once(ctx context.Context, table *placement.Table) error {
	if k.out != "" {
		if err := k.write(table); err != nil {
			return err
		}
		return k.run(ctx, table)
	}
	e, err := foreign.Export(k.format, table, k.options)
	if err != nil {
		return err
	}
	k.talk(e)
	_, err = k.app.out.Write(e.Data)
	return writeError(err)
}

func (k *exporter) talk(e foreign.Exported) {
	for _, n := range e.Notes {
		k.app.talk("%s: %s", k.format, n)
	}
}

// write brings the file up to date: nothing where it is so already, else a new
// file beside it, read back and compared, and moved into its place.
func (k *exporter) write(table *placement.Table) error {
	e, err := foreign.Export(k.format, table, k.options)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(k.out); err == nil && string(have) == string(e.Data) {
		return nil
	}
	k.talk(e)
	temp, err := k.writeBeside(e.Data)
	if err != nil {
		return err
	}
	defer os.Remove(temp) // gone once it is in place
	written, err := os.ReadFile(temp)
	if err != nil {
		return err
	}
	if err := foreign.Same(k.format, written, table, k.options); err != nil {
		return err
	}
	if err := os.Rename(temp, k.out); err != nil {
		return err
	}
	k.due, k.fresh = len(k.command) > 0, true
	k.app.talk("%s: written for version %s", k.out, table.Topology().Version())
	return syncDir(filepath.Dir(k.out))
}

// writeBeside writes data to a new file in the directory of the one it shall
// become, with that one's permissions.
func (k *exporter) writeBeside(data []byte) (path string, err error) {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(k.out); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(k.out), "."+filepath.Base(k.out)+".*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return f.Name(), err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// run runs the command if the file has changed since it last succeeded.
func (k *exporter) run(ctx context.Context, table *placement.Table) error {
	if !k.due {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	t := table.Topology()
	cmd := exec.CommandContext(ctx, k.command[0], k.command[1:]...)
	cmd.Env = append(os.Environ(), "SHARDD_FILE="+k.out, "SHARDD_CLUSTER="+t.Cluster(), "SHARDD_VERSION="+t.Version().String())
	cmd.Stdout, cmd.Stderr = k.app.env.Stderr, k.app.env.Stderr
	cmd.WaitDelay = time.Second // its children may hold the pipe
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", k.command[0], err)
	}
	k.due = false
	return nil
}
