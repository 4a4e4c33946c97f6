package sdk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shardd/shardd/topology"
)

// TestWriteSavedWhole: whoever reads the file while it is replaced finds one
// version or the other, whole.
func TestWriteSavedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	versions := make([]*topology.Topology, 2)
	for i := range versions {
		d := topology.Draft{Cluster: "cache", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: uint64(i + 1)},
			Spec: topology.Spec{Algorithm: topology.Ring}}
		for j := range 200 * (i + 1) {
			d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprint("node-", j), Weight: 1})
		}
		var err error
		if versions[i], err = topology.New(d); err != nil {
			t.Fatal(err)
		}
	}
	date := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := writeSaved(path, versions[0], date); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			err = writeSaved(path, versions[i%2], date)
		}
		done <- err
	}()
	seen := map[uint64]bool{}
	for {
		got, at, err := readSaved(path)
		if err != nil || !at.Equal(date) {
			t.Fatalf("%v, dated %v", err, at)
		}
		seen[got.Version().Seq] = true
		select {
		case err := <-done:
			if files, _ := os.ReadDir(dir); err != nil || len(files) != 1 {
				t.Fatalf("%v; files left: %v", err, files)
			}
			if len(seen) != 2 {
				t.Errorf("saw versions %v", seen)
			}
			return
		default:
		}
	}
}
