package foreign

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardd/shardd/topology"
)

// Format names a foreign file format.
type Format string

// The formats.
const (
	Twemproxy   Format = "twemproxy"
	Nginx       Format = "nginx"
	HAProxy     Format = "haproxy"
	Redis       Format = "redis-cluster"
	Memcached   Format = "memcached"
	GoRedisRing Format = "go-redis-ring"
	Thanos      Format = "thanos"
	EnvoyEDS    Format = "envoy-eds"

	Mcrouter Format = "mcrouter"  // written only
	RedisCLI Format = "redis-cli" // written only
)

// MaxSize is the largest size of a file in bytes.
const MaxSize = 16 << 20

// parsers has a line for each format that can be read. It is never changed.
var parsers = map[Format]func(data []byte, o Options) (*draft, error){
	Twemproxy: parseTwemproxy, Nginx: parseNginx, HAProxy: parseHAProxy, Redis: parseRedis,
	Memcached: parseMemcached, GoRedisRing: parseGoRedis, Thanos: parseThanos, EnvoyEDS: parseEnvoy,
}

// Readable lists the formats that Parse knows, by name.
func Readable() []Format { return sortedKeys(parsers) }

// Writable lists the formats that Export knows, by name.
func Writable() []Format { return sortedKeys(writers) }

func sortedKeys[V any](m map[Format]V) []Format {
	out := make([]Format, 0, len(m))
	for f := range m {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// Names writes formats as a list for messages and help.
func Names(formats []Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// Options say what a file does not.
type Options struct {
	// Pool names the pool, upstream, backend, hashring or Envoy cluster to read
	// where the file has several; "" = the only one.
	Pool string
	// Cluster is the name of the cluster; "" = that of the pool, in legal
	// characters, or "imported".
	Cluster string
	// Compat is the mapping, for formats that do not say it: memcached (default
	// ketama) and envoy-eds (default envoy-ring). Given for another format it is
	// an error.
	Compat topology.Foreign
}

// Result is what was read.
type Result struct {
	Format   Format
	Declared topology.Declared
	// Pool is the name of what was read, "" where the format has none.
	Pool string
	// Notes say what was passed over that matters in trouble, and what was
	// assumed; one line each.
	Notes []string
	// NodesOnly says that the file's system maps keys in a way that no mode
	// has: Declared has the nodes under the algorithm ring.
	NodesOnly bool
}

// Error says what is wrong in a file and where.
type Error struct {
	File      string // as given to Parse
	Line      int    // from 1; 0 = the file as a whole
	Directive string // "" = none
	Err       error
}

// Error returns "file:line: directive: reason".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Directive != "" {
		b.WriteString(": " + e.Directive)
	}
	return b.String() + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

func fault(line int, directive, format string, args ...any) error {
	return &Error{Line: line, Directive: directive, Err: fmt.Errorf(format, args...)}
}

// Parse reads data, a file of format f. name is used in errors only. The result
// is valid (topology.Declared.Validate) with a normal spec. Errors are *Error.
// Parse never panics.
func Parse(f Format, name string, data []byte, o Options) (Result, error) {
	if name == "" {
		name = "input"
	}
	r, err := parse(f, data, o)
	if err == nil {
		return r, nil
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	e.File = name
	return Result{}, e
}

func parse(f Format, data []byte, o Options) (Result, error) {
	read, ok := parsers[f]
	switch {
	case !ok:
		return Result{}, fault(0, "", "format %q cannot be read; known are %s", f, Names(Readable()))
	case len(data) > MaxSize:
		return Result{}, fault(0, "", "%d bytes are more than %d", len(data), MaxSize)
	case o.Compat != topology.Foreign{} && f != Memcached && f != EnvoyEDS:
		return Result{}, fault(0, "", "a %s file says itself how keys map; leave the mapping out", f)
	}
	d, err := read(data, o)
	if err != nil {
		return Result{}, err
	}
	return d.result(f, o)
}
