package cli

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/shardd/shardd/topology"
)

// agentState is what an agent keeps in its state file: who the node is, whatever
// its address, and which cluster it belongs to.
type agentState struct {
	Node        string             `json:"node"`
	Identity    string             `json:"identity"`
	Cluster     topology.ClusterID `json:"cluster"`
	Incarnation uint64             `json:"incarnation"`
}

// loadAgentState reads the file at path, or draws an identity if there is none.
func loadAgentState(path, node string) (agentState, error) {
	if path == "" {
		return agentState{Node: node}, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var id [16]byte
		_, _ = rand.Read(id[:]) // crypto/rand.Read never fails: it ends the program instead
		return agentState{Node: node, Identity: hex.EncodeToString(id[:])}, nil
	}
	if err != nil {
		return agentState{}, usagef("--state-file: %w", err)
	}
	var s agentState
	if err := json.Unmarshal(b, &s); err != nil || s.Node == "" || s.Identity == "" {
		return agentState{}, usagef("--state-file %s is not a state file of an agent (%v); name another one, or delete it if the node is new", path, err)
	}
	if s.Node != node {
		return agentState{}, usagef("--state-file %s belongs to node %q, not to %q; every node has its own", path, s.Node, node)
	}
	return s, nil
}

// save writes the file whole or not at all, and lasting.
func (s agentState) save(path string) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	defer os.Remove(f.Name()) // when it was not renamed
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	defer dir.Close()
	return dir.Sync()
}
