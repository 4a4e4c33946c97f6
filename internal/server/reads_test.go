package server_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/topology"
)

// TestHash10: field case; the slot of each key, as GET route shows it.
func TestHash10(t *testing.T) {
	r, _ := withStore(t)
	d := declared(3)
	d.Spec = topology.Spec{Algorithm: topology.Slots, KeyHash: topology.CRC16, HashTag: "{}"}
	r.put(d)
	for key, want := range map[string]int{
		"123456789": 12739, "foo{}{bar}": 8363, "wp:{}{same}": 1583, "{}{}{x}": 2088, "{}": 15257, "foo{{bar}}zap": 4015,
		"foo{bar}{zap}": 5061, "foo{bar": 15278, "A}B{C": 7939, "A}B{C}": 14503, "{user1000}.following": 3443,
		"{user1000}.followers": 3443, "a{'1':{'i32':1}}": 5540, "": 0, "\x00\xff\x7b\xfe\x7d": 3793, "キー{タグ}": 9716,
	} {
		for _, query := range []string{"key=" + url.QueryEscape(key), "key_hex=" + hex.EncodeToString([]byte(key))} {
			resp, body := r.call("GET", "/v1/clusters/cache/route?"+query, "")
			var got api.Route
			if err := json.Unmarshal([]byte(body), &got); err != nil || resp.status != http.StatusOK || got.Slot == nil || *got.Slot != want {
				t.Errorf("%q by %s: %d %s, want slot %d", key, query, resp.status, body, want)
			}
		}
	}
	// A mapping without slots shows none; under crc16 it shows those of Redis.
	d.Spec = topology.Spec{Algorithm: topology.Ring}
	r.put(d)
	if got, err := r.api.Route(t.Context(), "cache", []byte("k"), 2); err != nil || got.Slot != nil || len(got.Nodes) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	d.Spec = topology.Spec{Algorithm: topology.Ring, KeyHash: topology.CRC16, HashTag: "{}"}
	r.put(d)
	if got, err := r.api.Route(t.Context(), "cache", []byte("123456789"), 9); err != nil || got.Slot == nil || *got.Slot != 12739 || len(got.Nodes) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGetTopology(t *testing.T) {
	r, _ := withStore(t)
	d := declared(3)
	d.Spec = topology.Spec{Algorithm: topology.Maglev, TableSize: 251}
	first := r.put(d)
	second := r.node("more", api.VerbAdd, api.NodeEdit{Zone: "z"})
	const path = "/v1/clusters/cache/topology"

	resp, body := r.call("GET", path, "")
	var view struct {
		Cluster   string
		ClusterID topology.ClusterID `json:"cluster_id"`
		Version   topology.Version
		Algorithm string
		Nodes     []topology.Node
		Tables    []json.RawMessage
		Encoded   []byte
	}
	if err := json.Unmarshal([]byte(body), &view); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	topo, err := topology.Decode(view.Encoded)
	if err != nil || topo.Version() != second.Version || view.Version != second.Version || view.Cluster != "cache" || view.Algorithm != "maglev" ||
		view.ClusterID != second.ClusterID || len(view.Nodes) != 4 || len(view.Tables) != 2 { // owners, and since when
		t.Fatalf("%v: %s", err, body)
	}
	if resp.header.Get("ETag") != second.ETag().String() || resp.header.Get(api.ClusterHeader) != second.ClusterID.String() || resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", resp.header)
	}
	if resp, body := r.call("GET", path, "", "If-None-Match", second.ETag().String()); resp.status != http.StatusNotModified || body != "" {
		t.Errorf("not modified: %d %q", resp.status, body)
	}
	if resp, _ := r.call("GET", path, "", "If-None-Match", first.ETag().String()); resp.status != http.StatusOK {
		t.Errorf("modified: %d", resp.status)
	}
	if resp, body := r.call("HEAD", path, ""); resp.status != http.StatusOK || body != "" || resp.header.Get("ETag") == "" {
		t.Errorf("HEAD: %d %q %v", resp.status, body, resp.header)
	}

	for _, accept := range []string{api.TypeBinary, "text/html, application/octet-stream;q=0.5"} {
		_, body := r.call("GET", path, "", "Accept", accept)
		saved, err := topology.UnmarshalSaved([]byte(body))
		if err != nil || saved.Version() != second.Version || !saved.Complete() {
			t.Errorf("Accept %s: %v", accept, err)
		}
	}
	kept, err := r.api.TopologyAt(t.Context(), "cache", first.Version)
	if err != nil || kept.Version() != first.Version || kept.Digest() != first.Digest || !kept.Complete() {
		t.Errorf("kept: %v", err)
	}

	ref := topo.Refs()[0]
	resp, body = r.call("GET", "/v1/clusters/cache/objects/"+ref.Digest.String(), "")
	if o, err := topology.DecodeObject([]byte(body)); err != nil || o.Ref() != ref || !strings.Contains(resp.header.Get("Cache-Control"), "immutable") {
		t.Errorf("object: %v %v", err, resp.header)
	}
	// The table of the version before is there for clients that are late.
	if o, err := r.api.Object(t.Context(), "cache", kept.Refs()[0].Digest); err != nil || o.Ref() != kept.Refs()[0] {
		t.Errorf("table of the version before: %v", err)
	}
}

func TestGetSpec(t *testing.T) {
	r, _ := withStore(t)
	want := declared(3)
	want.Spec = topology.Spec{Algorithm: topology.Ring, VNodes: 40, Replicas: 2, BoundedLoad: 1.5}
	res := r.put(want)
	got, tag, err := r.api.Declared(t.Context(), "cache")
	want.Spec = want.Spec.Normal()
	if err != nil || tag != res.ETag() || got.Generation != 1 || got.Applied != 1 {
		t.Fatalf("%+v, %v, %v", got, tag, err)
	}
	if diff := cmp.Diff(want, got.Declared); diff != "" {
		t.Fatal(diff)
	}
	// What GET shows, PUT takes.
	if again := r.put(got.Declared); again.Version != res.Version {
		t.Errorf("%+v", again)
	}
	yaml := "cluster: cache\nalgorithm: ring\nnodes:\n  - {id: a}\n"
	if resp, body := r.call("PUT", "/v1/clusters/cache/spec", yaml, "Content-Type", "application/yaml"); resp.status != http.StatusOK {
		t.Errorf("YAML: %d %s", resp.status, body)
	}
}

// TestThousandNodes: a cluster of 1000 nodes is declared, published, travels
// and is built.
func TestThousandNodes(t *testing.T) {
	for _, algorithm := range topology.Algorithms() {
		r, _ := withStore(t)
		d := declared(1000)
		d.Spec = topology.Spec{Algorithm: algorithm}
		c := follow(t, nil, r.addr)
		res := r.put(d)
		reaches(t, c, res.Version)
		next := r.node("one-more", api.VerbAdd, api.NodeEdit{})
		reaches(t, c, next.Version)
		if c.Topology().Len() != 1001 || next.Movement == nil || next.Movement.Ratio > 0.01 {
			t.Errorf("%s: %d nodes, movement %+v", algorithm, c.Topology().Len(), next.Movement)
		}
		if _, err := c.Route(fmt.Sprint("key of ", algorithm)); err != nil {
			t.Error(err)
		}
		r.stop()
	}
}
