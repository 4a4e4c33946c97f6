package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/shardd/shardd/topology"
)

// keeper remembers the newest version of one cluster that this process has
// served, in a file if it has a directory: a process that comes back after its
// store was restored can say so. One file a cluster id, so that a cluster made
// anew under an old name begins afresh.
type keeper struct {
	dir  string // "" = in memory only
	name string // of the cluster

	mu     sync.Mutex
	id     topology.ClusterID // whose file was read
	newest *topology.Topology
}

func (k *keeper) path(id topology.ClusterID) string {
	return filepath.Join(k.dir, k.name+"."+id.String()+".topology")
}

// open reads the file of the cluster with this id, unless that is what is held.
// A file that cannot be used is an error; nothing is held then.
func (k *keeper) open(id topology.ClusterID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id == id {
		return nil
	}
	k.id, k.newest = id, nil
	if k.dir == "" {
		return nil
	}
	b, err := os.ReadFile(k.path(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("server: kept version: %w", err)
	}
	t, err := topology.UnmarshalSaved(b)
	if err == nil && (t.ClusterID() != id || t.Cluster() != k.name) {
		err = fmt.Errorf("%w: it is of cluster %q (%s)", topology.ErrCorrupt, t.Cluster(), t.ClusterID())
	}
	if err != nil {
		return fmt.Errorf("server: kept version %s: %w; it is replaced by the next version", k.path(id), err)
	}
	k.newest = t
	return nil
}

// held returns what is kept, or nil.
func (k *keeper) held() *topology.Topology {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.newest
}

// keep makes t what is kept if it is newer, on disk before it returns. Where
// that fails it is kept in memory, and the error says so.
func (k *keeper) keep(t *topology.Topology) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.newest != nil && k.newest.ClusterID() == t.ClusterID() && t.Version().Compare(k.newest.Version()) <= 0 {
		return nil
	}
	k.id, k.newest = t.ClusterID(), t
	if k.dir == "" {
		return nil
	}
	b, err := t.MarshalSaved()
	if err == nil {
		err = replaceFile(k.path(k.id), b)
	}
	if err != nil {
		return fmt.Errorf("server: keep version %s: %w", t.Version(), err)
	}
	return nil
}

// replaceFile makes b the file's contents, durably: a crash leaves the old or
// the new ones.
func replaceFile(path string, b []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing of that name
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
