package cli

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// routeFlags are the flags of route.
type routeFlags struct {
	file string
	how  foreignFlags // of file
	keys string
	hex  bool
	n    int
}

func (a *app) routeCommand() *cobra.Command {
	var f routeFlags
	cmd := &cobra.Command{Use: "route [KEY...]", Short: "Say which nodes hold keys",
		Long: "route prints one line a key: KEY, a tab, and its nodes in order of preference, the owner\nfirst, joined by commas. A key with a tab or a line end, or that begins with a quote, is\nprinted as a quoted Go string. The newest version is fetched once; with --file nothing is asked\nfrom a server. -o json prints one object a line, with hash and slot.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.route(cmd, args, f) }}
	fl := cmd.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "route by a cluster file (its first publication), a saved topology or another system's configuration")
	f.how.register(cmd, "file-", "--file")
	fl.StringVar(&f.keys, "keys", "", "file of keys, one a line; - = standard input")
	fl.BoolVar(&f.hex, "keys-hex", false, "keys are given, and printed, as hexadecimal digits")
	fl.IntVarP(&f.n, "nodes", "n", 0, "number of nodes a key; 0 = as many as the cluster has replicas")
	return cmd
}

func (a *app) route(cmd *cobra.Command, args []string, f routeFlags) error {
	if err := a.formats(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	switch {
	case f.n < 0:
		return usagef("--nodes %d: want 0 or more", f.n)
	case f.keys != "" && len(args) > 0:
		return usagef("keys are given both as arguments and by --keys; give one of them")
	case f.keys == "" && len(args) == 0:
		return usagef("no keys; give some as arguments, or a file with --keys")
	}
	table, err := a.routeTable(cmd, f.file, f.how)
	if err != nil {
		return err
	}
	name := f.file
	if name == "" {
		name = "version " + table.Topology().Version().String()
	}
	a.warn(name, table)
	keys, done, err := a.keys(args, f.keys, f.hex)
	if err != nil {
		return err
	}
	defer done()
	r := router{app: a, table: table, n: f.n, hex: f.hex, json: json.NewEncoder(a.out)}
	if r.n == 0 {
		r.n = int(table.Topology().Spec().Replicas)
	}
	r.json.SetEscapeHTML(false)
	for key, err := range keys {
		if err != nil {
			return usagef("%w", err)
		}
		if err := r.route(key); err != nil {
			return err
		}
	}
	return nil
}

// routeTable returns the mapping to route by: of a file, or the newest version.
func (a *app) routeTable(cmd *cobra.Command, file string, how foreignFlags) (*placement.Table, error) {
	if file != "" {
		l := a.loader(nil)
		var err error
		if l.From, err = how.read("file-"); err != nil {
			return nil, err
		}
		side, err := l.Source(cmd.Context(), remoteRef(l.From.Format, fileRef(file)))
		return side.Table, err
	}
	var table *placement.Table
	err := a.onCluster(cmd.Context(), func(c *api.Client, cluster string) error {
		t, _, err := c.Topology(cmd.Context(), cluster)
		if err != nil {
			return err
		}
		table, err = placement.New(t)
		return err
	})
	return table, err
}

// keys returns keys from arguments or a file, and what closes the file.
func (a *app) keys(args []string, file string, hexadecimal bool) (iter.Seq2[[]byte, error], func(), error) {
	none := func() {}
	switch file {
	case "":
		return argKeys(args, hexadecimal), none, nil
	case "-":
		return migrate.Keys(a.env.Stdin, hexadecimal), none, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, none, usagef("--keys: %w", err)
	}
	return migrate.Keys(f, hexadecimal), func() { f.Close() }, nil
}

func argKeys(args []string, hexadecimal bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, arg := range args {
			key, err := []byte(arg), error(nil)
			if hexadecimal {
				if key, err = hex.DecodeString(arg); err != nil {
					err = fmt.Errorf("key %q is not hexadecimal: %w", arg, err)
				}
			}
			if !yield(key, err) {
				return
			}
		}
	}
}

// router prints where keys go.
type router struct {
	app   *app
	table *placement.Table
	n     int
	hex   bool
	json  *json.Encoder
	nodes []int
	line  []byte
}

func (r *router) route(key []byte) error {
	h := r.table.HashBytes(key)
	r.nodes = r.table.AppendNodes(r.nodes[:0], key, r.n)
	if len(r.nodes) == 0 {
		return placement.ErrNoNodes
	}
	if r.app.format == formatTable {
		return r.tableLine(key)
	}
	t := r.table.Topology()
	v := api.Route{Cluster: t.Cluster(), Version: t.Version(), KeyHex: hex.EncodeToString(key), Hash: fmt.Sprintf("%016x", h), Slot: slotOf(t.Spec(), h)}
	if utf8.Valid(key) {
		v.Key = string(key)
	}
	for _, i := range r.nodes {
		v.Nodes = append(v.Nodes, t.Node(i))
	}
	if r.app.format == formatJSON {
		return writeError(r.json.Encode(v))
	}
	return r.app.emit([]api.Route{v}, func(io.Writer) {})
}

// tableLine writes KEY<TAB>NODE[,NODE...]. A key that would break the line, or
// that begins with a quote and could be taken for one of those, is written as a
// quoted Go string.
func (r *router) tableLine(key []byte) error {
	b := r.line[:0]
	switch {
	case r.hex:
		b = hex.AppendEncode(b, key)
	case strings.ContainsAny(string(key), "\t\n\r") || bytes.HasPrefix(key, []byte{'"'}):
		b = strconv.AppendQuote(b, string(key))
	default:
		b = append(b, key...)
	}
	sep := byte('\t')
	for _, i := range r.nodes {
		b = append(append(b, sep), r.table.Topology().Node(i).ID...)
		sep = ','
	}
	r.line = append(b, '\n')
	_, err := r.app.out.Write(r.line)
	return writeError(err)
}

// slotOf returns the slot of a hash: that of the slots algorithm, or of Redis
// Cluster under crc16, whose 14 bits stand highest in the hash; else nil.
func slotOf(s topology.Spec, h uint64) *int {
	var slot int
	switch {
	case s.Algorithm == topology.Slots:
		high, _ := bits.Mul64(h, uint64(s.SlotCount))
		slot = int(high)
	case s.KeyHash == topology.CRC16 || s.Compat.Mode == topology.ModeRedisSlots:
		slot = int(h >> 50)
	default:
		return nil
	}
	return &slot
}
