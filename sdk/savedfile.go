package sdk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/shardd/shardd/topology"
)

// maxSaved bounds what is read of a snapshot file, so that a wrong path costs an
// error and not the memory: a topology of the largest size with its tables is
// smaller.
const maxSaved = 256 << 20

// readSaved reads a saved topology and the file's time of modification.
func readSaved(path string) (*topology.Topology, time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, time.Time{}, errors.New("it is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSaved+1))
	if err != nil {
		return nil, time.Time{}, err
	}
	if len(b) > maxSaved {
		return nil, time.Time{}, fmt.Errorf("it is larger than %d bytes", maxSaved)
	}
	t, err := topology.UnmarshalSaved(b)
	return t, info.ModTime(), err
}

// resolve follows symbolic links at path, also to a file that is not there yet: it is
// the file behind them that is replaced, not the link.
func resolve(path string) string {
	for range 40 { // as many as Linux follows
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				break
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path
}

// writeSaved replaces the file at path by t, dated at. Whoever reads it, also
// after a crash, finds the old file or the new one, whole.
func writeSaved(path string, t *topology.Topology, at time.Time) error {
	path = resolve(path)
	b, err := t.MarshalSaved()
	if err != nil {
		return err
	}
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+base+".*.tmp")
	if err != nil {
		return err
	}
	err = fill(f, b, at)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// fill writes b to f, makes sure that it is on the disk, and closes f.
func fill(f *os.File, b []byte, at time.Time) error {
	_, err := f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Chtimes(f.Name(), time.Time{}, at)
	}
	return err
}

// syncDir makes the renaming last. Windows has no such thing.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
