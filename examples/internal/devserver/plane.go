package devserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Plane edits one cluster through shardd's HTTP API, as any program in
// any language can; on the command line it would be "shardd apply" and "shardd
// node add".
type Plane struct{ URL, Cluster string }

// edit is what this example reads of the answer to an edit.
type edit struct {
	Published bool
	Version   string
	Movement  struct{ Movement struct{ Ratio float64 } } `json:"movement"`
}

// Answer is the answer to an edit with the movement's ratio at hand.
type Answer struct {
	Version  string
	Movement struct{ Ratio float64 }
}

// Node is a node as it is declared.
type Node struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

// Declare makes the cluster, or changes it, with these nodes on a ring.
func (p Plane) Declare(ctx context.Context, nodes []Node) (Answer, error) {
	return p.send(ctx, http.MethodPut, "/spec", map[string]any{"cluster": p.Cluster, "algorithm": "ring", "nodes": nodes})
}

// AddNode adds a node.
func (p Plane) AddNode(ctx context.Context, n Node) (Answer, error) {
	return p.send(ctx, http.MethodPost, "/nodes/"+n.ID+"/add", map[string]any{"addr": n.Addr})
}

// RampNode adds a node that takes its keys over in steps, within so much time.
func (p Plane) RampNode(ctx context.Context, n Node, over time.Duration) (Answer, error) {
	return p.send(ctx, http.MethodPost, "/nodes/"+n.ID+"/add", map[string]any{"addr": n.Addr, "ramp": over.String()})
}

func (p Plane) send(ctx context.Context, method, path string, body any) (Answer, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return Answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.URL+"/v1/clusters/"+p.Cluster+path, bytes.NewReader(b))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(resp.Body); err != nil {
		return Answer{}, err
	}
	var e edit
	if err := json.Unmarshal(b, &e); err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated || !e.Published {
		return Answer{}, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	return Answer{e.Version, e.Movement.Movement}, nil
}
