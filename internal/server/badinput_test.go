package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

const jsonBody = "application/json"

// TestBadInput: each piece of bad input gets one clear error, and the cluster
// is afterwards what it was before.
func TestBadInput(t *testing.T) {
	r, store := withStore(t)
	r.put(declared(3))
	before, err := store.Open("cache").Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const spec = "/v1/clusters/cache/spec"
	const head = `{"cluster":"cache","algorithm":"ring",`
	f := func(method, path, body string, status int, code api.Code, words ...string) {
		t.Helper()
		resp, text := r.call(method, path, body, "Content-Type", jsonBody)
		e := errorOf(t, text)
		if resp.status != status || e.Code != code {
			t.Errorf("%s %s %.80s: status %d, %s", method, path, body, resp.status, text)
			return
		}
		for _, w := range words {
			if !strings.Contains(e.Message+" "+e.Hint, w) {
				t.Errorf("%s %s %.80s: %q does not say %q", method, path, body, text, w)
			}
		}
	}
	put := func(body string, words ...string) {
		t.Helper()
		f("PUT", spec, body, http.StatusUnprocessableEntity, api.CodeInvalid, words...)
	}
	put(``, "empty")
	put(`{`)
	put(`[]`)
	put("\x00\xff")
	put(head + `"nodes":[{"id":"a"}]} {}`)
	put(head+"\n \"nodez\":[{\"id\":\"a\"}]}", "nodez", "body:2:2")
	put(head+`"nodes":[{"id":"a","wieght":1}]}`, "wieght", "body:1:")
	put(`{"cluster":"cache","algorithm":"rink","nodes":[{"id":"a"}]}`, "rink", "body:1:32")
	put(head+`"nodes":[{"id":"a"},{"id":"a"}]}`, "duplicate")
	put(head+`"nodes":[{"id":""}]}`, "empty")
	put(head+`"nodes":[{"id":"a/b"}]}`, "'/'")
	put(head+`"nodes":[]}`, "nodes")
	put(head+`"nodes":[{"id":"a","weight":-1}]}`, "-1")
	put(head+`"nodes":[{"id":"a","weight":1.5}]}`, "1.5")
	put(head+`"nodes":[{"id":"a","weight":1000001}]}`, "1000001")
	put(head + `"nodes":[{"id":"a","weight":99999999999999999999}]}`)
	put(head+`"nodes":[{"id":"a","weight":0}]}`, "weight 0")
	put(head+`"ring":{"vnodes":5000000},"nodes":[{"id":"a"}]}`, "5000000")
	put(head+`"nodes":[{"id":"a","weight":1000000}]}`, "points")
	put(`{"cluster":"cache","algorithm":"maglev","maglev":{"table_size":65536},"nodes":[{"id":"a"}]}`, "65537")
	put(head+`"nodes":[{"id":"a"}],"bounded_load":0.5}`, "bounded_load")
	put(`{"cluster":"other","algorithm":"ring","nodes":[{"id":"a"}]}`, "other", "cache")
	f("PUT", "/v1/clusters/a%2Fb/spec", head+`"nodes":[{"id":"a"}]}`, 422, api.CodeInvalid, "a/b")
	f("PUT", spec+"?wait=soon", head+`"nodes":[{"id":"a"}]}`, 400, api.CodeBadRequest, "wait")
	f("PUT", spec+"?why="+strings.Repeat("x", 1000), head+`"nodes":[{"id":"a"}]}`, 422, api.CodeInvalid, "256")

	node := func(id, verb, body string, status int, code api.Code, words ...string) {
		t.Helper()
		f("POST", "/v1/clusters/cache/nodes/"+id+"/"+verb, body, status, code, words...)
	}
	node("node-000", "add", `{}`, 409, api.CodeExists, "node-000")
	node("a%2Fb", "add", `{}`, 422, api.CodeInvalid, "'/'")
	node("a%20b", "add", `{}`, 422, api.CodeInvalid, "' '")
	node("x", "add", `{"weight":-1}`, 400, api.CodeBadRequest, "line 1, column 11", "whole number")
	node("x", "add", `{"weight":1.5}`, 400, api.CodeBadRequest, "1.5")
	node("x", "add", `{"weight":4000000}`, 422, api.CodeInvalid, "4000000")
	node("x", "add", "{\n  \"wait\": 1}", 400, api.CodeBadRequest, "line 2, column 3", "wait")
	node("x", "add", `{"addr":"a","addr":"b"}`, 400, api.CodeBadRequest, "twice", "column 13")
	node("x", "add", `{"addr":"a`, 400, api.CodeBadRequest, "cut short")
	node("x", "add", ``, 400, api.CodeBadRequest, "empty")
	node("x", "add", `{}{}`, 400, api.CodeBadRequest, "more than one")
	node("x", "add", `{"addr":7}`, 400, api.CodeBadRequest, "addr", "string")
	node("x", "add", `{"addr":"`+strings.Repeat("x", 70_000)+`"}`, 413, api.CodeTooLarge)
	node("x", "remove", `{}`, 404, api.CodeNoNode, "x")
	node("node-000", "remove", `{"weight":1}`, 422, api.CodeInvalid, "no fields")
	node("node-000", "weight", `{}`, 422, api.CodeInvalid, "weight")
	node("x", "weight", `{"weight":2}`, 404, api.CodeNoNode)
	node("node-000", "explode", `{}`, 404, api.CodeNotFound, "explode")

	get := func(path string, status int, code api.Code, words ...string) {
		t.Helper()
		f("GET", "/v1/clusters/"+path, "", status, code, words...)
	}
	get("nope/topology", 404, api.CodeNoCluster, "nope")
	get("nope/watch", 404, api.CodeNoCluster)
	get("cache/nope", 404, api.CodeNotFound)
	get("cache/watch?after=1", 400, api.CodeBadRequest, "after")
	get("cache/watch?after=1.1", 400, api.CodeBadRequest, "digest")
	get("cache/watch?digest=xyz", 400, api.CodeBadRequest, "digest")
	get("cache/objects/xyz", 400, api.CodeBadRequest, "digest")
	get("cache/objects/00000000000000000000000000000001", 404, api.CodeNoObject)
	get("cache/movement/7", 400, api.CodeBadRequest, "EPOCH.SEQ")
	get("cache/movement/1.99", 404, api.CodeNoVersion)
	get("cache/topology?version=9.9", 404, api.CodeNoVersion)
	get("cache/history?limit=0", 400, api.CodeBadRequest, "limit")
	get("cache/route", 400, api.CodeBadRequest, "key")
	get("cache/route?key=a&key_hex=61", 400, api.CodeBadRequest, "one of")
	get("cache/route?key_hex=6", 400, api.CodeBadRequest, "key_hex")
	get("cache/route?key=a&n=-1", 400, api.CodeBadRequest, "n=")
	f("DELETE", "/v1/clusters/cache/spec", "", 405, api.CodeMethod, "GET or PUT")
	f("POST", "/v1/clusters", "{}", 405, api.CodeMethod, "GET")
	f("GET", "/debug/pprof/", "", 404, api.CodeNotFound)

	after, err := store.Open("cache").Load(t.Context())
	if err != nil || after.Generation != before.Generation || after.Head.Ref() != before.Head.Ref() {
		t.Fatalf("the cluster changed: %v, %s -> %s", err, before.ETag(), after.ETag())
	}
	if names, _ := store.List(t.Context()); len(names) != 1 {
		t.Fatalf("clusters: %v", names)
	}
}

// TestIfMatch: an edit made from a state that has changed since is a conflict.
func TestIfMatch(t *testing.T) {
	r, _ := withStore(t)
	first := r.put(declared(3))
	second := r.node("x", api.VerbAdd, api.NodeEdit{})
	stale, fresh := first.ETag(), second.ETag()
	for name, edit := range map[string]func(api.ETag) error{
		"put": func(tag api.ETag) error {
			_, err := r.api.PutSpec(t.Context(), declared(4), api.EditOptions{IfMatch: tag})
			return err
		},
		"remove": func(tag api.ETag) error {
			_, err := r.api.EditNode(t.Context(), "cache", "node-000", api.VerbRemove, api.NodeEdit{}, api.EditOptions{IfMatch: tag})
			return err
		},
	} {
		err := edit(stale)
		var e *api.Error
		if !errors.Is(err, membership.ErrConflict) || !errors.As(err, &e) || e.Status != http.StatusConflict || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	res, err := r.api.PutSpec(t.Context(), declared(4), api.EditOptions{IfMatch: fresh})
	if err != nil || res.Generation != fresh.Generation+1 {
		t.Fatalf("%+v, %v", res, err)
	}
	// A cluster that is not there is not created by an edit of something seen.
	d := declared(1)
	d.Cluster = "other"
	if _, err := r.api.PutSpec(t.Context(), d, api.EditOptions{IfMatch: fresh}); !errors.Is(err, membership.ErrNoCluster) {
		t.Fatal(err)
	}
	for _, tag := range []string{"*", "W/" + fresh.String(), `"1.1"`, `"x+y"`, `"1.1+0"`, fresh.String() + ", " + stale.String()} {
		resp, body := r.call("POST", "/v1/clusters/cache/nodes/y/add", "{}", "Content-Type", jsonBody, "If-Match", tag)
		if resp.status != http.StatusBadRequest {
			t.Errorf("If-Match %s: %d %s", tag, resp.status, body)
		}
	}
	// A cluster made anew under the name is another one, whatever its generation.
	if err := r.api.DeleteCluster(t.Context(), "cache", "cache", first.ClusterID); err != nil {
		t.Fatal(err)
	}
	again := r.put(declared(3))
	if again.Generation != stale.Generation || again.ClusterID == first.ClusterID {
		t.Fatalf("%+v", again)
	}
	for _, edit := range []func() error{
		func() error {
			_, err := r.api.PutSpec(t.Context(), declared(4), api.EditOptions{IfMatch: stale})
			return err
		},
		func() error {
			_, err := r.api.Rollback(t.Context(), "cache", topology.Version{Epoch: 1, Seq: 1}, api.EditOptions{IfMatch: stale})
			return err
		},
		func() error {
			_, err := r.api.EditNode(t.Context(), "cache", "node-000", api.VerbRemove, api.NodeEdit{}, api.EditOptions{IfMatch: stale})
			return err
		},
	} {
		if err := edit(); !errors.Is(err, membership.ErrConflict) {
			t.Errorf("the tag of a cluster that was deleted: %v", err)
		}
	}
	if _, err := r.api.Bump(t.Context(), "cache", api.BumpRequest{Force: true}, api.EditOptions{IfMatch: stale}); !errors.Is(err, api.ErrCluster) {
		t.Errorf("bump by the tag of a cluster that was deleted: %v", err)
	}
	body := fmt.Sprintf(`{"cluster":%q,"algorithm":"ring","nodes":[{"id":"a"}]}`, "cache")
	if resp, text := r.call("PUT", "/v1/clusters/cache/spec", body, "Content-Type", jsonBody, "If-None-Match", "*"); resp.status != http.StatusConflict || errorOf(t, text).Code != api.CodeExists {
		t.Errorf("If-None-Match on a cluster that is there: %d %s", resp.status, text)
	}
}

// TestEditsWithoutChange: an edit that changes nothing is accepted and makes no
// version; the last node may go, and come back.
func TestEditsWithoutChange(t *testing.T) {
	r, _ := withStore(t)
	first := r.put(declared(1))
	again := r.put(declared(1))
	if again.Version != first.Version || again.From != first.Version || again.Movement != nil || again.Generation != first.Generation+1 {
		t.Fatalf("%+v", again)
	}
	c := follow(t, nil, r.addr)
	empty := r.node("node-000", api.VerbRemove, api.NodeEdit{})
	if len(empty.Warnings) != 1 || empty.Warnings[0].Code != "no_nodes" {
		t.Fatalf("%+v", empty.Warnings)
	}
	reaches(t, c, empty.Version)
	if _, err := c.Route("k"); err == nil {
		t.Fatal("routed without nodes")
	}
	back := r.node("node-007", api.VerbAdd, api.NodeEdit{})
	reaches(t, c, back.Version)
	if _, err := c.Route("k"); err != nil {
		t.Fatal(err)
	}
}

func TestWarnings(t *testing.T) {
	r, _ := withStore(t)
	d := declared(20)
	d.Spec = topology.Spec{Algorithm: topology.Ring, VNodes: 1, Replicas: 3, ZoneAware: true}
	codes := func(res api.EditResult) (all []string) {
		for _, w := range res.Warnings {
			all = append(all, w.Code)
			if w.Message == "" || w.Hint == "" {
				t.Errorf("%+v", w)
			}
		}
		return all
	}
	if got := fmt.Sprint(codes(r.put(d))); got != "[few_zones imbalance]" {
		t.Error(got)
	}
	d = declared(2)
	d.Spec = topology.Spec{Algorithm: topology.Rendezvous, Replicas: 3}
	if got := fmt.Sprint(codes(r.put(d))); got != "[few_nodes]" {
		t.Error(got)
	}
	d = declared(3)
	if got := fmt.Sprint(codes(r.put(d))); got != "[]" {
		t.Error(got)
	}
}
