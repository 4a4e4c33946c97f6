package filesource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/shardd/shardd/topology"
)

// maxFile bounds what is read, so that a wrong path costs an error and not the
// memory.
const maxFile = 256 << 20

// settled is the age of a file from which on its time of modification tells all
// changes apart: file systems date files to 2 s (FAT) or better.
const settled = 2 * time.Second

// file is what is known of the file at path.
type file struct {
	path string
	info os.FileInfo // when it was read last; nil = it is to be read
	tail []byte      // its digest when it was good last
}

// look returns the topology in the file if it is another one than the last time,
// nil if it is the same, or what is wrong with it. After an error the file is
// read again the next time, for it may be half written.
func (f *file) look() (*topology.Topology, error) {
	info, err := os.Stat(f.path)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		err = fmt.Errorf("%s is not a file", f.path)
	}
	if err != nil {
		f.forget()
		return nil, err
	}
	if f.info != nil && same(f.info, info) {
		return nil, nil
	}
	t, err := f.read()
	if err != nil {
		f.forget()
		return nil, err
	}
	return t, nil
}

func (f *file) forget() { f.info, f.tail = nil, nil }

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (f *file) read() (*topology.Topology, error) {
	open, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	info, err := open.Stat() // of what is read, whatever path leads to by now
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(open, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, errors.New(f.path + " is larger than a topology can be")
	}
	f.info = nil
	if time.Since(info.ModTime()) > settled {
		f.info = info
	}
	tail := b[max(0, len(b)-len(topology.Digest{})):]
	if f.tail != nil && bytes.Equal(f.tail, tail) && topology.IsSaved(b) && topology.Sum(b[:len(b)-len(tail)]) == topology.Digest(tail) {
		return nil, nil
	}
	t, err := topology.UnmarshalSaved(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	f.tail = tail
	return t, nil
}
