package etcdkv

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/topology"
)

func digest(b byte) topology.Digest { return topology.Digest{0: b, 15: b} }

func TestRecordsReadBack(t *testing.T) {
	v := topology.Version{Epoch: 2, Seq: 45}
	meta := Meta{Format: Format, ID: topology.ClusterID{1}, Epoch: 2, History: 7}
	head := Head{Version: v, History: 7, Digest: digest(1), Mapping: digest(2), Objects: []topology.Digest{digest(3)}, Generation: 9}
	declared := Declared{Generation: 4, Digest: digest(5), Edit: "x", Notes: []byte(`[1]`)}
	version := VersionRecord{Version: v, History: 7, Digest: digest(1), Objects: []topology.Digest{digest(3)}, Movement: digest(6),
		Nodes: 3, Moved: true, Ratio: 0.25, Cause: topology.Cause{Kind: "created", By: "a", Why: "b", At: 5}}
	check(t, meta, DecodeMeta)
	check(t, head, DecodeHead)
	check(t, declared, DecodeDeclared)
	check(t, version, DecodeVersion)
	link := Link{History: 7, Digest: digest(1)}
	if got, err := DecodeLink(link.Encode()); err != nil || got != link {
		t.Errorf("link: %v %v", got, err)
	}
}

func check[T any](t *testing.T, v T, decode func([]byte) (T, error)) {
	t.Helper()
	b, err := EncodeRecord(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(b)
	if diff := cmp.Diff(v, got); err != nil || diff != "" {
		t.Errorf("%T from %s: %v %s", v, b, err, diff)
	}
}

func TestRecordsRefused(t *testing.T) {
	head, declared, meta, version := "head", "declared", "meta", "version"
	for _, c := range []struct{ what, value string }{
		{head, ""}, {head, "{}"}, {head, "[]"}, {head, `{"version":"1"}`}, {head, `{"version":"1.1","history":"00000000000000aa"}`},
		{head, `{"version":"0.1","history":"00000000000000aa","digest":"00000000000000000000000000000001"}`},
		{head, `{"version":"1.1","history":"zz","digest":"00000000000000000000000000000001"}`},
		{declared, ""}, {declared, `{"generation":1}`}, {declared, `{"generation":-1,"digest":"00000000000000000000000000000001"}`},
		{meta, "null"}, {meta, `{"format":1}`}, {meta, `{"format":2,"id":"00000000000000000000000000000001","epoch":1,"history":"00000000000000aa"}`},
		{version, `{"version":"1.1"}`}, {version, "x"},
	} {
		var err error
		switch c.what {
		case head:
			_, err = DecodeHead([]byte(c.value))
		case declared:
			_, err = DecodeDeclared([]byte(c.value))
		case meta:
			_, err = DecodeMeta([]byte(c.value))
		case version:
			_, err = DecodeVersion([]byte(c.value))
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%s %q: %v", c.what, c.value, err)
		}
	}
	if _, err := DecodeLink([]byte("00000000000000aa")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("link: %v", err)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"version":"1.1","history":"00000000000000aa","digest":"00000000000000000000000000000001","generation":9}`))
	f.Add([]byte(`{"format":1,"id":"00000000000000000000000000000001","epoch":1,"history":"00000000000000aa"}`))
	f.Add([]byte(`{"ref":{"ClusterID":"00000000000000000000000000000001","History":"00000000000000aa","Version":"1.1","Digest":"00000000000000000000000000000001"},"by":"x"}`))
	f.Add([]byte("00000000000000aa 00000000000000000000000000000001"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := DecodeHead(b); err == nil {
			check(t, h, DecodeHead)
		}
		if m, err := DecodeMeta(b); err == nil {
			check(t, m, DecodeMeta)
		}
		if e, err := DecodeEvidence(b); err == nil {
			check(t, e, DecodeEvidence)
		}
		if l, err := DecodeLink(b); err == nil && string(l.Encode()) != strings.ToLower(string(b)) {
			t.Fatalf("link %q reads as %q", b, l.Encode())
		}
	})
}

func TestDeclaredContent(t *testing.T) {
	id := topology.ClusterID{1}
	d := topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: topology.Ring}.Normal(),
		Nodes: []topology.Node{{ID: "a", Weight: 1, Label: "l"}, {ID: "b", Weight: 0, State: topology.StateDown, Zone: "z", Addr: "x:1"}}}
	b, err := EncodeDeclared(id, d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeDeclaredContent(id, b)
	if diff := cmp.Diff(d, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := DecodeDeclaredContent(topology.ClusterID{2}, b); !errors.Is(err, ErrCorrupt) {
		t.Errorf("for another cluster: %v", err)
	}
	if _, err := DecodeDeclaredContent(id, b[1:]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("cut: %v", err)
	}
}

func TestPrecedes(t *testing.T) {
	head := Head{Version: topology.Version{Epoch: 2, Seq: 9}, History: 7}
	held := topology.Ref{History: 7, Version: topology.Version{Epoch: 2, Seq: 5}, Digest: digest(1)}
	link := Link{History: 7, Digest: digest(1)}.Encode()
	if !head.Precedes(held, link) {
		t.Error("an ancestor is refused")
	}
	later := held
	later.Version.Seq = 10
	epoch := held
	epoch.Version.Epoch = 1
	history := held
	history.History = 8
	for name, ok := range map[string]bool{
		"later": head.Precedes(later, link), "epoch": head.Precedes(epoch, link), "history": head.Precedes(history, link),
		"digest": head.Precedes(held, Link{History: 7, Digest: digest(2)}.Encode()), "no link": head.Precedes(held, nil),
	} {
		if ok {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestKeys(t *testing.T) {
	a, err := NewKeys("", "a")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/shardd/a/meta", "/shardd/a/declared", "/shardd/a/head", "/shardd/a/leader", "/shardd/a/topology/2.45", "/shardd/a/chain/2.45",
		"/shardd/a/object/01000000000000000000000000000001/007"}
	v := topology.Version{Epoch: 2, Seq: 45}
	got := []string{a.Meta(), a.Declared(), a.Head(), a.Leader(), a.Version(v), a.Chain(v), a.Part(digest(1), 7)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if d, ok := a.objectOf(a.Part(digest(9), 3)); !ok || d != digest(9) {
		t.Errorf("objectOf: %v %v", d, ok)
	}
	if _, ok := a.objectOf(a.Objects() + "junk"); ok {
		t.Error("junk is taken for an object")
	}
	for _, prefix := range []string{"x", "/", "/x/", "//x", "/x//y", "/a b", "/.."} {
		if _, err := NewKeys(prefix, "a"); err == nil {
			t.Errorf("prefix %q is accepted", prefix)
		}
	}
	for _, cluster := range []string{"", "a/b", ".", "..", directoryDir} {
		if _, err := NewKeys("", cluster); err == nil {
			t.Errorf("cluster %q is accepted", cluster)
		}
	}
}

// TestDeclaredMade: an editor finds its own write among those that others have
// made since, and is told when there were too many to tell.
func TestDeclaredMade(t *testing.T) {
	var d Declared
	write := func(edit string) { d = Declared{Edit: edit, Recent: d.After()} }
	f := func(edit, before string, wantMade, wantSure bool) {
		t.Helper()
		if made, sure := d.Made(edit, before); made != wantMade || sure != wantSure {
			t.Errorf("after %s: %s after %q: made %t, sure %t; want %t, %t", d.Edit, edit, before, made, sure, wantMade, wantSure)
		}
	}
	f("w0", "", false, true)
	write("w0")
	f("w0", "", true, true)
	f("x", "w0", false, true)
	for i := range MaxRecent {
		write(fmt.Sprint("w", i+1))
	}
	f("w0", "", true, true)
	f("x", "w0", false, true)
	write("last")
	f("w0", "", false, false)
	f("x", "w0", false, false)
	f("x", "w1", false, true)
	if n := len(d.Recent); n != MaxRecent {
		t.Errorf("%d writes are remembered, want %d", n, MaxRecent)
	}
}
