package etcdkv_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/topology"
)

func random(seed byte, n int) etcdkv.Content {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return etcdkv.NewContent(b)
}

func keysOf(t testing.TB) etcdkv.Keys {
	t.Helper()
	k, err := etcdkv.NewKeys("", "c")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// refer writes contents and a record that refers to them.
func refer(t *testing.T, c *etcdkv.Client, k etcdkv.Keys, contents ...etcdkv.Content) error {
	t.Helper()
	p, err := c.Prepare(t.Context(), k, contents, nil)
	if err != nil {
		return err
	}
	_, err = c.Commit(t.Context(), etcdkv.Txn{If: p.If, Puts: append(p.Puts, etcdkv.Put{Key: "ref", Value: []byte("x")})})
	return err
}

func TestContents(t *testing.T) {
	server := start(t)
	c := etcdkv.New(server.Client(), etcdkv.Options{})
	k := keysOf(t)
	contents := []etcdkv.Content{random(1, 10), random(2, 200_000), random(3, 3_000_000), random(1, 10), etcdkv.NewContent(nil)}
	for range 2 { // the second time everything is there
		if err := refer(t, c, k, contents...); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range contents {
		got, err := c.Fetch(t.Context(), k, want.Digest)
		if err != nil || !bytes.Equal(got[0], want.Data) {
			t.Errorf("%d bytes: %v", len(want.Data), err)
		}
	}
	if _, err := c.Fetch(t.Context(), k, contents[0].Digest, random(9, 5).Digest); !errors.Is(err, etcdkv.ErrMissing) {
		t.Errorf("one of two is missing: %v", err)
	}
	if _, err := c.Prepare(t.Context(), k, []etcdkv.Content{random(1, 10), random(4, 17<<20)}, nil); !errors.Is(err, etcdkv.ErrTooLarge) {
		t.Errorf("17 MiB: %v", err)
	}
}

// TestTorso: what a writer that died left behind, also one with another
// compressor, is written anew as a whole; junk under the prefix does no harm.
func TestTorso(t *testing.T) {
	server := start(t)
	client := server.Client()
	c := etcdkv.New(client, etcdkv.Options{})
	k := keysOf(t)
	content := random(5, 1_300_000)
	parts, err := etcdkv.Pack(content.Data)
	if err != nil {
		t.Fatal(err)
	}
	for name, torso := range map[string]map[string]string{
		"a part":          {k.Part(content.Digest, 0): string(parts[0])},
		"the wrong parts": {k.Part(content.Digest, 0): string(parts[0]), k.Part(content.Digest, 1): string(parts[0]), k.Part(content.Digest, 2): "x"},
		"junk":            {k.Object(content.Digest): "", k.Object(content.Digest) + "0": "junk", k.Object(content.Digest) + "000x": "junk"},
	} {
		if _, err := client.Delete(t.Context(), k.Objects(), clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		for key, v := range torso {
			if _, err := client.Put(t.Context(), key, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := refer(t, c, k, content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := c.Fetch(t.Context(), k, content.Digest); err != nil || !bytes.Equal(got[0], content.Data) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReferToWhatGoes: contents that vanish, or are written by another, between
// Prepare and the transaction: it is refused.
func TestReferToWhatGoes(t *testing.T) {
	server := start(t)
	client := server.Client()
	c := etcdkv.New(client, etcdkv.Options{})
	k := keysOf(t)
	for _, content := range []etcdkv.Content{random(6, 100), random(7, 1_000_000)} {
		p, err := c.Prepare(t.Context(), k, []etcdkv.Content{content}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Puts) > 0 { // goes along: another writes it first
			_, err = client.Put(t.Context(), p.Puts[0].Key, "other")
		} else {
			_, err = client.Delete(t.Context(), k.Object(content.Digest), clientv3.WithPrefix())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Commit(t.Context(), etcdkv.Txn{If: p.If, Puts: append(p.Puts, etcdkv.Put{Key: "ref"})}); !errors.Is(err, etcdkv.ErrConflict) {
			t.Errorf("%d bytes: %v", len(content.Data), err)
		}
	}
	fence := []etcdkv.Compare{{Key: "leader", Revision: 77}}
	if _, err := c.Prepare(t.Context(), k, []etcdkv.Content{random(8, 1_000_000)}, fence); !errors.Is(err, etcdkv.ErrConflict) {
		t.Errorf("without the fence: %v", err)
	}
	if _, err := c.Fetch(t.Context(), k, random(8, 1_000_000).Digest); !errors.Is(err, etcdkv.ErrMissing) {
		t.Errorf("and yet something was written: %v", err)
	}
}

func record(t *testing.T, v any) []byte {
	t.Helper()
	b, err := etcdkv.EncodeRecord(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCollect: kept are what head, declared state and kept versions refer to,
// what was written lately, and what is not ours.
func TestCollect(t *testing.T) {
	server := start(t)
	client := server.Client()
	c := etcdkv.New(client, etcdkv.Options{})
	k := keysOf(t)
	put := func(key string, v []byte) {
		t.Helper()
		if _, err := client.Put(t.Context(), key, string(v)); err != nil {
			t.Fatal(err)
		}
	}
	content := func(name string) topology.Digest {
		t.Helper()
		content := etcdkv.NewContent([]byte(name))
		if err := refer(t, c, k, content); err != nil {
			t.Fatal(err)
		}
		return content.Digest
	}
	version := func(seq uint64, moved bool) topology.Digest {
		t.Helper()
		v := topology.Version{Epoch: 1, Seq: seq}
		d := content(fmt.Sprint("topology", seq))
		put(k.Version(v), record(t, etcdkv.VersionRecord{Version: v, History: 1, Digest: d, Movement: content(fmt.Sprint("report", seq)), Moved: moved}))
		return d
	}
	put(k.Meta(), record(t, etcdkv.Meta{Format: etcdkv.Format, ID: topology.ClusterID{1}, Epoch: 1, History: 1}))
	put(k.Declared(), record(t, etcdkv.Declared{Generation: 1, Digest: content("declared")}))
	content("garbage")
	put(k.Versions()+"junk", []byte("not ours"))
	put(k.Objects()+"junk/000", []byte("not ours"))
	var newest topology.Digest
	for seq := uint64(1); seq <= 12; seq++ {
		newest = version(seq, seq <= 9)
	}
	content("lately")
	put(k.Head(), record(t, etcdkv.Head{Version: topology.Version{Epoch: 1, Seq: 12}, History: 1, Digest: newest}))

	got, err := c.Collect(t.Context(), k, 2, nil)
	if diff := cmp.Diff(etcdkv.Collected{Versions: 8, Objects: 2*8 + 1}, got); err != nil || diff != "" {
		t.Fatalf("Collect: %v %s", err, diff)
	}
	for name, want := range map[string]bool{"declared": true, "garbage": false, "lately": true, "topology12": true, "report12": true,
		"topology9": true, "topology8": true, "topology7": false, "report7": false, "topology10": false, "topology11": true} {
		_, err := c.Fetch(t.Context(), k, topology.Sum([]byte(name)))
		if (err == nil) != want {
			t.Errorf("%s: %v, want there: %v", name, err, want)
		}
	}
	r, err := c.Get(t.Context(), etcdkv.Range{Key: k.Versions() + "junk"}, etcdkv.Range{Key: k.Objects() + "junk/000"})
	if err != nil || r.First(0).ModRevision == 0 || r.First(1).ModRevision == 0 {
		t.Errorf("what is not ours is gone: %v", err)
	}
	if got, err := c.Collect(t.Context(), k, 2, nil); err != nil || got != (etcdkv.Collected{}) {
		t.Errorf("a second time: %+v %v", got, err)
	}
	content("garbage again")
	version(13, true)
	version(14, true)
	if _, err := c.Collect(t.Context(), k, 2, []etcdkv.Compare{{Key: "leader", Revision: 5}}); !errors.Is(err, etcdkv.ErrConflict) {
		t.Errorf("of a leader no more: %v", err)
	}
	put(k.Head(), []byte("junk"))
	if _, err := c.Collect(t.Context(), k, 2, nil); !errors.Is(err, etcdkv.ErrCorrupt) {
		t.Errorf("with a head that nobody understands: %v", err)
	}
}
