package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/migrate/foreign/rediscluster"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// foreignFlags say how another system's configuration is read.
type foreignFlags struct{ format, pool, compat string }

// register adds the flags, whose names begin with prefix.
func (f *foreignFlags) register(cmd *cobra.Command, prefix, of string) {
	fl := cmd.Flags()
	fl.StringVar(&f.format, prefix+"format", "", "format of "+of+" that is another system's configuration: "+foreign.Names(foreign.Readable())+"; default: by its content")
	f.registerContents(cmd, prefix, of)
}

func (f *foreignFlags) registerContents(cmd *cobra.Command, prefix, of string) {
	fl := cmd.Flags()
	fl.StringVar(&f.pool, prefix+"pool", "", "which pool, upstream, backend, hashring or cluster of "+of+", if it has several")
	fl.StringVar(&f.compat, prefix+"compat", "", `how keys map where `+of+` does not say it (memcached, envoy-eds): a mode, or "mode: libmemcached, distribution: modula"`)
}

// read returns what the flags ask for; prefix is for messages.
func (f foreignFlags) read(prefix string) (migrate.Import, error) {
	i := migrate.Import{Format: foreign.Format(f.format), Pool: f.pool}
	if f.compat == "" {
		return i, nil
	}
	c, err := foreign.ParseMapping(f.compat)
	if err != nil {
		return i, usagef("--%scompat: %w", prefix, err)
	}
	i.Compat = c
	return i, nil
}

func (a *app) importCommand() *cobra.Command {
	var f foreignFlags
	cmd := &cobra.Command{Use: "import [FORMAT] FILE|ADDR", Short: "Print another system's configuration as a cluster file", Args: cobra.RangeArgs(1, 2),
		Long: "import reads another system's configuration and prints the cluster file that maps keys as\nthat system does. Formats: " + foreign.Names(foreign.Readable()) + ";\nwithout one it is recognised by the content. - is standard input. A Redis Cluster is read from\nits nodes.conf, or live from an address (host:port, redis://user:password@host:port, rediss://\nfor TLS; a password may stand in $REDISCLI_AUTH). --cluster names the cluster.\n\nA directive that decides where keys go and cannot be read is an error with its line. What only\nmatters in trouble (failing servers, full queues) is passed over and told on standard error.\nThanos: nodes only, under the algorithm ring, since its mapping of series is none of keys.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				f.format = args[0]
			}
			return a.importFile(cmd.Context(), f, args[len(args)-1])
		}}
	f.registerContents(cmd, "", "the file")
	return cmd
}

func (a *app) importFile(ctx context.Context, f foreignFlags, ref string) error {
	if err := a.formats(formatTable, formatYAML); err != nil {
		return err
	}
	if err := a.checkCluster(); err != nil {
		return err
	}
	how, err := f.read("")
	if err != nil {
		return err
	}
	r, err := a.readForeign(ctx, how, ref)
	if err != nil {
		return err
	}
	for _, n := range r.Notes {
		a.talk("%s: %s", migrate.WithoutSecret(ref), n)
	}
	_, err = a.out.Write(clusterfile.Format(r.Declared))
	return writeError(err)
}

func (a *app) checkCluster() error {
	if a.cluster == "" {
		return nil
	}
	if err := topology.ValidateClusterName(a.cluster); err != nil {
		return usagef("--cluster: %w", err)
	}
	return nil
}

// readForeign reads a file, standard input, or a live Redis Cluster.
func (a *app) readForeign(ctx context.Context, how migrate.Import, ref string) (foreign.Result, error) {
	if isRemote(how.Format, ref) {
		return a.readRedis(ctx, ref)
	}
	data, err := a.readInput(ref)
	if err != nil {
		return foreign.Result{}, usagef("%w", err)
	}
	if how.Format == "" {
		var ok bool
		if how.Format, ok = foreign.Detect(data); !ok {
			return foreign.Result{}, usagef("%s: the format is not recognised; name it, one of %s", ref, foreign.Names(foreign.Readable()))
		}
		a.talk("%s: read as %s", ref, how.Format)
	}
	r, err := foreign.Parse(how.Format, ref, data, foreign.Options{Pool: how.Pool, Cluster: a.cluster, Compat: how.Compat})
	if err != nil {
		return r, usagef("%w", err)
	}
	return r, nil
}

func (a *app) readInput(ref string) ([]byte, error) {
	if ref != "-" {
		return os.ReadFile(ref)
	}
	return io.ReadAll(io.LimitReader(a.env.Stdin, foreign.MaxSize+1))
}

// isRemote says whether ref is the address of a Redis Cluster rather than a file.
func isRemote(f foreign.Format, ref string) bool {
	if strings.HasPrefix(ref, "redis://") || strings.HasPrefix(ref, "rediss://") {
		return true
	}
	if f != foreign.Redis || !strings.Contains(ref, ":") {
		return false
	}
	_, err := os.Stat(ref)
	return errors.Is(err, fs.ErrNotExist)
}

// readRedis asks a node of a live Redis Cluster.
func (a *app) readRedis(ctx context.Context, ref string) (foreign.Result, error) {
	o, err := rediscluster.Options(ref, a.env.Getenv("REDISCLI_AUTH"))
	if err != nil {
		return foreign.Result{}, usagef("%w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	c := redis.NewClient(o)
	defer c.Close()
	if err := c.Ping(ctx).Err(); err != nil {
		return foreign.Result{}, &coded{ExitUnreachable, fmt.Errorf("%s: %w", o.Addr, err)}
	}
	return rediscluster.Read(ctx, c, a.cluster)
}

// remoteRef writes the address of a Redis Cluster as one that cannot be a file.
func remoteRef(f foreign.Format, ref string) string {
	if isRemote(f, ref) && !strings.Contains(ref, "://") {
		return "redis://" + ref
	}
	return ref
}
