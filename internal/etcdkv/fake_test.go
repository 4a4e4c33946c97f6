package etcdkv_test

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fake is just so much of etcd that a follower can be watched in virtual time:
// reads, watches, and their failures.
type fake struct {
	clientv3.KV
	clientv3.Watcher
	mu        sync.Mutex
	rev       int64
	kvs       map[string]*mvccpb.KeyValue
	history   []*clientv3.Event
	compacted int64
	watches   []*fakeWatch
	down      bool // reads fail
	silent    bool // new and standing watches tell nothing
	reads     int
	opened    int
}

type fakeWatch struct {
	ctx    context.Context
	match  func(string) bool
	rev    int64
	ch     chan clientv3.WatchResponse
	closed bool
}

func newFake() *fake { return &fake{rev: 1, kvs: map[string]*mvccpb.KeyValue{}} }

func (f *fake) put(key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rev++
	kv := &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: f.rev, CreateRevision: f.rev}
	if old := f.kvs[key]; old != nil {
		kv.CreateRevision = old.CreateRevision
	}
	f.kvs[key] = kv
	f.event(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
}

func (f *fake) delete(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rev++
	delete(f.kvs, key)
	f.event(&clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: f.rev}})
}

func (f *fake) event(e *clientv3.Event) {
	f.history = append(f.history, e)
	if f.silent {
		return
	}
	for _, w := range f.watches {
		f.send(w, e)
	}
}

// send is called with the lock held; channels have room for every test.
func (f *fake) send(w *fakeWatch, events ...*clientv3.Event) {
	if w.closed || w.ctx.Err() != nil || len(events) == 0 || !w.match(string(events[0].Kv.Key)) || events[0].Kv.ModRevision < w.rev {
		return
	}
	w.ch <- clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: f.rev}, Events: events}
}

// restore goes back to an earlier content and revision, as a backup does; the
// standing watches stay, silent until their revision is reached.
func (f *fake) restore(rev int64, kvs map[string]*mvccpb.KeyValue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rev, f.kvs, f.history = rev, kvs, nil
	for _, w := range f.watches {
		w.rev = max(w.rev, rev+1)
	}
}

// fail ends all standing watches with resp.
func (f *fake) fail(resp clientv3.WatchResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.watches {
		if !w.closed && w.ctx.Err() == nil {
			if resp.Canceled {
				w.ch <- resp
			}
			w.closed = true
			close(w.ch)
		}
	}
	f.watches = nil
}

// counts returns how many readings were made and watches opened.
func (f *fake) counts() (reads, opened int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads, f.opened
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := clientv3.OpGet(key, opts...)
	f.opened++
	w := &fakeWatch{ctx: ctx, match: matcher(op), rev: op.Rev(), ch: make(chan clientv3.WatchResponse, 1000)}
	if w.rev <= f.compacted {
		w.ch <- clientv3.WatchResponse{Header: &pb.ResponseHeader{}, Canceled: true, CompactRevision: f.compacted}
		close(w.ch)
		return w.ch
	}
	f.watches = append(f.watches, w)
	if !f.silent {
		for _, e := range f.history {
			f.send(w, e)
		}
	}
	return w.ch
}

func matcher(op clientv3.Op) func(string) bool {
	key, end := string(op.KeyBytes()), string(op.RangeBytes())
	return func(k string) bool { return k == key || end != "" && k >= key && k < end }
}

func (f *fake) Txn(context.Context) clientv3.Txn { return &fakeTxn{f: f} }

type fakeTxn struct {
	clientv3.Txn
	f   *fake
	ops []clientv3.Op
}

func (t *fakeTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.ops = ops
	return t
}

func (t *fakeTxn) Commit() (*clientv3.TxnResponse, error) {
	f := t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.down {
		return nil, status.Error(codes.Unavailable, "down")
	}
	resp := &clientv3.TxnResponse{Header: &pb.ResponseHeader{Revision: f.rev}, Succeeded: true}
	for _, op := range t.ops {
		match := matcher(op)
		r := &pb.RangeResponse{}
		for key, kv := range f.kvs {
			if match(key) {
				r.Kvs = append(r.Kvs, kv)
			}
		}
		resp.Responses = append(resp.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: r}})
	}
	return resp, nil
}

var compacted = clientv3.WatchResponse{Canceled: true, CompactRevision: 99}
