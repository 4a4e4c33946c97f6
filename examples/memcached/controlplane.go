package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// controlPlane edits one cluster through shardd's HTTP API, as any program in
// any language can; on the command line it would be "shardd apply" and "shardd
// node add".
type controlPlane struct{ url, cluster string }

// edit is what this example reads of the answer to an edit.
type edit struct {
	Published bool
	Version   string
	Movement  struct{ Movement struct{ Ratio float64 } } `json:"movement"`
}

// answer is edit with the movement's ratio at hand.
type answer struct {
	Version  string
	Movement struct{ Ratio float64 }
}

type node struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

func (p controlPlane) declare(ctx context.Context, nodes []node) (answer, error) {
	return p.send(ctx, http.MethodPut, "/spec", map[string]any{"cluster": p.cluster, "algorithm": "ring", "nodes": nodes})
}

func (p controlPlane) addNode(ctx context.Context, n node) (answer, error) {
	return p.send(ctx, http.MethodPost, "/nodes/"+n.ID+"/add", map[string]any{"addr": n.Addr})
}

func (p controlPlane) send(ctx context.Context, method, path string, body any) (answer, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+"/v1/clusters/"+p.cluster+path, bytes.NewReader(b))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(resp.Body); err != nil {
		return answer{}, err
	}
	var e edit
	if err := json.Unmarshal(b, &e); err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated || !e.Published {
		return answer{}, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	return answer{e.Version, e.Movement.Movement}, nil
}
