package etcdkv

import (
	"context"
	"errors"
	"slices"

	"github.com/shardd/shardd/topology"
)

// inlineLimit is the most bytes of parts that go along with the transaction
// that refers to them; more are written before it.
const inlineLimit = 256 << 10

// Prepared is what a transaction takes along to refer to contents: its
// comparisons hold as long as every part is there as it was seen or written.
type Prepared struct {
	If   []Compare
	Puts []Put
}

// Prepare sees to it that contents can be referred to by a transaction that
// takes the result along. What is there already is verified and used; what is
// small goes along; the rest is written now, fenced by fence, and is garbage
// for Collect until something refers to it. Errors: ErrTooLarge (nothing is
// written), those of Commit, ErrConflict also when another writer or a
// collection came between: prepare again.
func (c *Client) Prepare(ctx context.Context, k Keys, contents []Content, fence []Compare) (Prepared, error) {
	packed := make([][][]byte, len(contents))
	ranges := make([]Range, len(contents))
	for i, content := range contents {
		parts, err := pack(content.Data)
		if err != nil {
			return Prepared{}, err
		}
		packed[i] = parts
		ranges[i] = Range{Key: k.Object(content.Digest), Prefix: true, Limit: MaxParts}
	}
	if len(contents) == 0 {
		return Prepared{}, nil
	}
	there, err := c.Get(ctx, ranges...)
	if err != nil {
		return Prepared{}, err
	}
	w := &writer{c: c, fence: fence}
	for i, content := range contents {
		w.add(k, content.Digest, packed[i], there.Items[i])
	}
	return w.finish(ctx)
}

// writer collects the parts to write.
type writer struct {
	c     *Client
	fence []Compare
	out   Prepared
	put   []Put     // to be written
	as    []Compare // parallel to put: what is there now
	size  int
}

func (w *writer) add(k Keys, d topology.Digest, parts [][]byte, there []Item) {
	if n, err := verify(k, d, there); err == nil {
		// Another release may have packed it otherwise; its parts are as good.
		for _, item := range partsOf(k, d, there)[:n] {
			w.out.If = append(w.out.If, item.As(item.Key))
		}
		return
	}
	// Nothing there, or a torso that a writer left behind: all parts anew, so
	// that those of two compressors never mix.
	for i, part := range parts {
		key := k.Part(d, i)
		if slices.ContainsFunc(w.put, func(p Put) bool { return p.Key == key }) {
			return // the same content twice
		}
		old := Item{}
		if j := slices.IndexFunc(there, func(it Item) bool { return it.Key == key }); j >= 0 {
			old = there[j]
		}
		w.put = append(w.put, Put{Key: key, Value: part})
		w.as = append(w.as, old.As(key))
		w.size += len(part)
	}
}

func (w *writer) finish(ctx context.Context) (Prepared, error) {
	if w.size <= inlineLimit {
		w.out.If = append(w.out.If, w.as...)
		w.out.Puts = w.put
		return w.out, nil
	}
	const batch = 2 // parts a request: 1 MiB
	for i := 0; i < len(w.put); i += batch {
		end := min(i+batch, len(w.put))
		rev, err := w.c.Commit(ctx, Txn{If: append(slices.Clone(w.fence), w.as[i:end]...), Puts: w.put[i:end], Confirm: w.put[i].Key})
		if err != nil {
			return Prepared{}, err
		}
		for _, p := range w.put[i:end] {
			w.out.If = append(w.out.If, Compare{Key: p.Key, Revision: rev})
		}
	}
	return w.out, nil
}

func values(items []Item) [][]byte {
	out := make([][]byte, len(items))
	for i, item := range items {
		out[i] = item.Value
	}
	return out
}

// Fetch reads contents by digest, verified, all or none. ErrMissing says that
// one is not there (any more), ErrCorrupt names one that is not what it should
// be.
func (c *Client) Fetch(ctx context.Context, k Keys, digests ...topology.Digest) ([][]byte, error) {
	if len(digests) == 0 {
		return nil, nil
	}
	ranges := make([]Range, len(digests))
	for i, d := range digests {
		ranges[i] = Range{Key: k.Object(d), Prefix: true, Limit: MaxParts}
	}
	r, err := c.Get(ctx, ranges...)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(digests))
	for i, d := range digests {
		data, err := unpack(values(partsOf(k, d, r.Items[i])), d)
		if err != nil {
			return nil, err
		}
		out[i] = data
	}
	return out, nil
}

// partsOf leaves out what is no part of the content, and what follows a gap.
func partsOf(k Keys, d topology.Digest, items []Item) []Item {
	var parts []Item
	for _, item := range items {
		if item.Key == k.Part(d, len(parts)) {
			parts = append(parts, item)
		}
	}
	return parts
}

// verify returns the number of parts that hold the content whole.
func verify(k Keys, d topology.Digest, items []Item) (int, error) {
	parts := values(partsOf(k, d, items))
	if _, err := unpack(parts, d); err != nil {
		return 0, err
	}
	return partCount(parts[0]), nil
}

// Stale reports whether err says that what was to be read is gone or was
// written meanwhile, so that reading the records again is the remedy.
func Stale(err error) bool { return errors.Is(err, ErrMissing) || errors.Is(err, ErrConflict) }
