package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// Current is the reference to the newest published version.
const Current = "current"

// Errors that callers decide on.
var (
	// ErrFile: a file cannot be read or used. The message says why.
	ErrFile = errors.New("migrate: file cannot be used")
	// ErrNoServer: a reference needs a server and none was given. Name one,
	// or plan from files.
	ErrNoServer = errors.New("migrate: no server")
	// ErrCluster: the two sides are of different clusters, so that the one
	// cannot become the other. Check which files or addresses were given.
	ErrCluster = errors.New("migrate: different clusters")
)

// Versions are the published versions of one cluster, as a server keeps them.
type Versions interface {
	// Topology returns version v with its tables; zero = the newest.
	Topology(ctx context.Context, v topology.Version) (*topology.Topology, error)
}

// Side is one side of a plan: a mapping and where it comes from.
type Side struct {
	// Name is the reference as it was given: a path, "current", "2.45".
	Name string
	// Published says that the version was published. It is false for what
	// was made from a cluster file.
	Published bool
	Table     *placement.Table
}

// String returns the published version, or the name of the cluster file.
func (s Side) String() string {
	if s.Published {
		return s.Table.Topology().Version().String()
	}
	return s.Name
}

// Loader finds what references stand for: "current", a version such as "2.45",
// or the path of a cluster file, of a saved topology, or of another system's
// configuration (see package foreign). A file whose name looks
// like one of the former is reached as "./current".
type Loader struct {
	// Versions answers "current" and versions; nil = ErrNoServer.
	Versions Versions
	// ReadFile reads a file; nil = os.ReadFile.
	ReadFile func(path string) ([]byte, error)
	// Remote reads a reference with "://", such as the address of a Redis
	// Cluster; nil = refused.
	Remote func(ctx context.Context, ref string) (foreign.Result, error)
	// From and To say how the sides are read where they are another system's
	// configuration; Source follows From, Target To.
	From, To Import
	// Note takes what is worth knowing about such a side, a line at a time; nil
	// = dropped.
	Note func(text string)
}

// Source loads the side that a plan starts from. A cluster file stands for its
// first publication. Errors: ErrFile, ErrNoServer, and those of Versions.
func (l Loader) Source(ctx context.Context, ref string) (Side, error) {
	s, err := l.look(ctx, ref, l.From)
	if err != nil {
		return Side{}, err
	}
	return l.source(ctx, ref, s)
}

// Target loads the side that a plan leads to. A cluster file stands for the
// update of from to its spec and nodes. Errors: as Source, and ErrCluster if it
// is of another cluster.
func (l Loader) Target(ctx context.Context, from Side, ref string) (Side, error) {
	s, err := l.look(ctx, ref, l.To)
	if err != nil {
		return Side{}, err
	}
	return l.target(ctx, from, ref, s)
}

// load loads what ref stands for; b is the file, if it is one.
func (l Loader) load(ctx context.Context, ref string, from *placement.Table, b []byte) (Side, error) {
	version, err := topology.ParseVersion(ref)
	switch {
	case err == nil && version.IsZero(): // Versions takes it for the newest
		return Side{}, &fileError{fmt.Errorf("migrate: version %s: there is none; the first is 1.1, the newest goes by %q", ref, Current)}
	case err == nil || ref == Current:
		return l.published(ctx, ref, version)
	}
	side := Side{Name: ref}
	if topology.IsSaved(b) {
		side.Published = true
		side.Table, err = savedTable(ref, b)
	} else {
		side.Table, err = fileTable(ref, b, from)
	}
	if err != nil {
		return Side{}, &fileError{err}
	}
	return side, nil
}

// fileError is ErrFile with the reason for a message, which names the file.
type fileError struct{ err error }

func (e *fileError) Error() string { return e.err.Error() }

func (e *fileError) Unwrap() error { return e.err }

func (e *fileError) Is(target error) bool { return target == ErrFile }

func (l Loader) read(path string) ([]byte, error) {
	if l.ReadFile != nil {
		return l.ReadFile(path)
	}
	return os.ReadFile(path)
}

func (l Loader) published(ctx context.Context, ref string, v topology.Version) (Side, error) {
	if l.Versions == nil {
		return Side{}, fmt.Errorf("%w: %q is a published version; name a server, or give a file", ErrNoServer, ref)
	}
	t, err := l.Versions.Topology(ctx, v)
	if err != nil {
		return Side{}, err
	}
	table, err := placement.New(t)
	if err != nil {
		return Side{}, err
	}
	return Side{Name: ref, Published: true, Table: table}, nil
}

func savedTable(name string, b []byte) (*placement.Table, error) {
	t, err := topology.UnmarshalSaved(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	table, err := placement.New(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return table, nil
}

func fileTable(name string, b []byte, from *placement.Table) (*placement.Table, error) {
	d, err := clusterfile.Parse(name, b)
	if err != nil {
		return nil, err
	}
	table, err := Next(from, d)
	if err != nil {
		return nil, clusterfile.Locate(name, b, err)
	}
	return table, nil
}

// Next returns the mapping that publishing d would make out of from; from nil =
// the first publication. Its version, cause and, for the first, cluster id are
// stand-ins: no key's owner depends on them. Errors are *topology.FieldError.
func Next(from *placement.Table, d topology.Declared) (*placement.Table, error) {
	draft := topology.Draft{Cluster: d.Cluster, Spec: d.Spec, Nodes: d.Nodes}
	if from == nil {
		draft.ID = topology.ClusterID(topology.Sum([]byte("planned cluster " + d.Cluster)))
		draft.History, draft.Version = 1, topology.Version{Epoch: 1, Seq: 1}
	} else {
		was := from.Topology().Draft()
		draft.ID, draft.History, draft.Version = was.ID, was.History, was.Version
		draft.Version.Seq++
	}
	return placement.Update(from, draft)
}
