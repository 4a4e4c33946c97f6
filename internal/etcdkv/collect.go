package etcdkv

import (
	"cmp"
	"context"
	"slices"

	"github.com/shardd/shardd/topology"
)

// Collected says what a collection removed.
type Collected struct{ Versions, Objects int }

// Collect removes versions beyond those kept, and contents that nothing refers
// to any more. Kept are the last keep versions of any kind and the last keep
// that changed ownership, and whatever head and declared state refer to.
//
// Every removal compares meta, head, declared state and fence with what the
// decision was made from; a writer compares every part that it refers to. So a
// content that is about to be referred to is either seen here, or missed there
// and written again. Contents written after the last version but one are left
// alone, so that this is rare. ErrConflict means that somebody wrote meanwhile;
// what was removed until then was rightly removed.
func (c *Client) Collect(ctx context.Context, k Keys, keep int, fence []Compare) (Collected, error) {
	r, err := c.Get(ctx,
		Range{Key: k.Meta()}, Range{Key: k.Head()}, Range{Key: k.Declared()},
		Range{Key: k.Versions(), Prefix: true},
		Range{Key: k.Objects(), Prefix: true, KeysOnly: true})
	if err != nil {
		return Collected{}, err
	}
	g := &garbage{k: k, live: map[topology.Digest]bool{}}
	if err := g.mark(r, keep); err != nil {
		return Collected{}, err
	}
	deletes := g.sweep(r.Items[4])
	fence = append(slices.Clone(fence), r.First(0).As(k.Meta()), r.First(1).As(k.Head()), r.First(2).As(k.Declared()))
	for batch := range slices.Chunk(deletes, MaxOps/2) {
		if _, err := c.Commit(ctx, Txn{If: fence, Deletes: batch}); err != nil {
			return Collected{}, err
		}
	}
	return Collected{Versions: len(g.drop), Objects: len(deletes) - len(g.drop)}, nil
}

type garbage struct {
	k     Keys
	live  map[topology.Digest]bool
	drop  []topology.Version
	since int64 // contents written at this revision or later are left alone
}

// mark finds what is referred to, and which versions go. What does not decode
// is somebody else's and stays; a head or declared state that does not decode
// stops the collection, for nobody knows what they refer to.
func (g *garbage) mark(r Reading, keep int) error {
	head, err := DecodeHead(r.First(1).Value)
	if err != nil {
		return err
	}
	declared, err := DecodeDeclared(r.First(2).Value)
	if err != nil {
		return err
	}
	g.refer(append(head.Contents(), declared.Digest)...)
	type version struct {
		VersionRecord
		revision int64
	}
	var versions []version
	for _, item := range r.Items[3] {
		if v, err := DecodeVersion(item.Value); err == nil && g.k.Version(v.Version) == item.Key {
			versions = append(versions, version{v, item.ModRevision})
		}
	}
	slices.SortFunc(versions, func(a, b version) int { return b.Version.Compare(a.Version) })
	moved := 0
	for i, v := range versions {
		if i < keep || v.Moved && moved < keep {
			g.refer(v.Contents()...)
		} else {
			g.drop = append(g.drop, v.Version)
		}
		if v.Moved {
			moved++
		}
	}
	if len(versions) > 1 {
		g.since = versions[1].revision
	}
	return nil
}

func (g *garbage) refer(digests ...topology.Digest) {
	for _, d := range digests {
		g.live[d] = true
	}
}

// sweep returns what to delete: first the versions, then the contents.
func (g *garbage) sweep(parts []Item) []Range {
	var deletes []Range
	for _, v := range g.drop {
		deletes = append(deletes, Range{Key: g.k.Version(v)})
	}
	newest := map[topology.Digest]int64{}
	for _, part := range parts {
		if d, ok := g.k.objectOf(part.Key); ok && !g.live[d] {
			newest[d] = max(newest[d], part.ModRevision)
		}
	}
	for d, revision := range newest {
		if revision < g.since {
			deletes = append(deletes, Range{Key: g.k.Object(d), Prefix: true})
		}
	}
	dropped := len(g.drop)
	slices.SortFunc(deletes[dropped:], func(a, b Range) int { return cmp.Compare(a.Key, b.Key) })
	return deletes
}
