package etcdkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Compare asks for a key as it was read.
type Compare struct {
	Key      string
	Revision int64 // the ModRevision it must have; 0 = it must not exist
	// Created compares the CreateRevision: for a key that its owner may write
	// again, such as the election key.
	Created bool
}

// As returns the comparison with an item as it was read: key must be its key.
func (i Item) As(key string) Compare { return Compare{Key: key, Revision: i.ModRevision} }

// Put writes a key.
type Put struct {
	Key   string
	Value []byte
	Lease clientv3.LeaseID // 0 = none
}

// Txn is a fenced transaction: if all comparisons hold, all writes are made.
type Txn struct {
	If      []Compare
	Puts    []Put
	Deletes []Range // Key and Prefix count
	// Confirm is the key of a put whose value nobody else writes, and whose
	// revision is among the comparisons. When an answer is lost, it tells
	// whether the transaction was made. "" = an outcome may stay unknown.
	Confirm string
}

// size is what the transaction takes as a request, framing rounded up.
func (t Txn) size() int {
	const frame = 48 // of an operation or comparison: tags, lengths, lease, revision
	n := 0
	for _, c := range t.If {
		n += 2*len(c.Key) + 2*frame // once more to read it when it fails
	}
	for _, p := range t.Puts {
		n += len(p.Key) + len(p.Value) + frame
	}
	for _, d := range t.Deletes {
		n += 2*len(d.Key) + frame
	}
	return n
}

func (t Txn) check() error {
	ops := max(len(t.If), len(t.Puts)+len(t.Deletes))
	if ops > MaxOps {
		return fmt.Errorf("%w: %d operations in one transaction, over the limit of %d", ErrTooLarge, ops, MaxOps)
	}
	if n := t.size(); n > MaxRequest {
		return fmt.Errorf("%w: a request of %d bytes is over the limit of %d", ErrTooLarge, n, MaxRequest)
	}
	return nil
}

// Commit makes the transaction and returns its revision, or makes nothing.
// Errors: a *CompareError, ErrTooLarge (nothing is sent), ErrRefused,
// ErrUnreachable (the outcome is unknown).
func (c *Client) Commit(ctx context.Context, t Txn) (int64, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	var resp *clientv3.TxnResponse
	err := c.call(ctx, "write "+t.first(), func(ctx context.Context) (err error) {
		resp, err = c.kv.Txn(ctx).If(t.cmps()...).Then(t.ops()...).Else(t.otherwise()...).Commit()
		return err
	})
	if err != nil {
		return 0, err
	}
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	return t.failed(reading(resp, len(resp.Responses)))
}

func (t Txn) first() string {
	switch {
	case len(t.Puts) > 0:
		return t.Puts[len(t.Puts)-1].Key
	case len(t.Deletes) > 0:
		return t.Deletes[0].Key
	}
	return "nothing"
}

func (t Txn) cmps() []clientv3.Cmp {
	cmps := make([]clientv3.Cmp, len(t.If))
	for i, c := range t.If {
		if c.Created {
			cmps[i] = clientv3.Compare(clientv3.CreateRevision(c.Key), "=", c.Revision)
		} else {
			cmps[i] = clientv3.Compare(clientv3.ModRevision(c.Key), "=", c.Revision)
		}
	}
	return cmps
}

func (t Txn) ops() []clientv3.Op {
	ops := make([]clientv3.Op, 0, len(t.Puts)+len(t.Deletes))
	for _, p := range t.Puts {
		ops = append(ops, clientv3.OpPut(p.Key, string(p.Value), clientv3.WithLease(p.Lease)))
	}
	for _, d := range t.Deletes {
		if d.Prefix {
			ops = append(ops, clientv3.OpDelete(d.Key, clientv3.WithPrefix()))
		} else {
			ops = append(ops, clientv3.OpDelete(d.Key))
		}
	}
	return ops
}

// otherwise reads the compared keys, to say which comparison failed, and the
// value of Confirm, to see whether the transaction was made after all.
func (t Txn) otherwise() []clientv3.Op {
	ops := make([]clientv3.Op, len(t.If))
	for i, c := range t.If {
		ops[i] = Range{Key: c.Key, KeysOnly: c.Key != t.Confirm}.op()
	}
	return ops
}

// failed says why. A try whose answer was lost may have been made, by this
// call or inside the client: then the comparison with the revision of Confirm
// fails because of the transaction itself, and its value is still there.
func (t Txn) failed(r Reading) (int64, error) {
	var first error
	for i, c := range t.If {
		item := r.First(i)
		have := item.ModRevision
		if c.Created {
			have = item.CreateRevision
		}
		if have == c.Revision {
			continue
		}
		if c.Key == t.Confirm && bytes.Equal(item.Value, t.value(c.Key)) {
			return item.ModRevision, nil
		}
		if first == nil {
			first = &CompareError{Key: c.Key, Want: c.Revision, Have: have}
		}
	}
	if first == nil { // cannot be: the reading is of the revision that failed
		return 0, errors.New("etcdkv: write refused although every comparison holds")
	}
	return 0, first
}

func (t Txn) value(key string) []byte {
	for _, p := range t.Puts {
		if p.Key == key {
			return p.Value
		}
	}
	return nil
}
