package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Limits of one request, checked before it is sent: etcd's defaults.
const (
	// MaxOps is the most comparisons, and the most operations, of a transaction.
	MaxOps = 128
	// MaxRequest is the most bytes of a request, keys and framing included.
	MaxRequest = 3 << 19 // 1.5 MiB
)

// Options of a Client. The zero value takes the defaults.
type Options struct {
	// TryTimeout bounds one try of a call; default 2 s. The first gets eight
	// times what calls have taken lately, from 100 ms to a quarter of this, the
	// next ones twice as long each up to all of it: a try that meets a member
	// that does not answer is made again on another one.
	TryTimeout time.Duration
	// CallTimeout bounds a call with all its tries; default 10 s.
	CallTimeout time.Duration
	// Poll is the time between the readings that a follower makes behind its
	// watch, give or take a tenth; default 5 s. It bounds how long a silent
	// stream goes unnoticed.
	Poll time.Duration
	// Logger; nil = none.
	Logger hclog.Logger
	// Rand returns the chance in jitter, 0 <= r < 1; nil = math/rand/v2.
	Rand func() float64
}

func (o Options) withDefaults() Options {
	setDefault(&o.TryTimeout, 2*time.Second)
	setDefault(&o.CallTimeout, 10*time.Second)
	setDefault(&o.Poll, 5*time.Second)
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}

// Client is an etcd client with limits and deadlines. Safe for concurrent use.
type Client struct {
	kv        clientv3.KV
	watcher   clientv3.Watcher
	lease     clientv3.Lease
	conn      *grpc.ClientConn // nil = in this process
	endpoints func() []string
	o         Options
	latency   atomic.Int64 // of calls lately, in ns; 0 = not known
}

// New wraps c, which the caller keeps and closes.
func New(c *clientv3.Client, o Options) *Client {
	return &Client{kv: c.KV, watcher: c.Watcher, lease: c.Lease, conn: c.ActiveConnection(), endpoints: c.Endpoints, o: o.withDefaults()}
}

// Range selects keys.
type Range struct {
	Key      string
	Prefix   bool  // all keys that begin with Key, ascending
	KeysOnly bool  // leave the values out
	Limit    int64 // at most so many keys; 0 = all
}

// Item is one key as it was read.
type Item struct {
	Key            string
	Value          []byte
	ModRevision    int64 // of the last write; 0 = the key does not exist
	CreateRevision int64
}

// Reading is several ranges at one revision.
type Reading struct {
	Revision int64
	Items    [][]Item // one list a range
}

// First returns the single key that the i-th range selected, or an Item that
// says that there is none.
func (r Reading) First(i int) Item {
	if len(r.Items[i]) == 0 {
		return Item{}
	}
	return r.Items[i][0]
}

// Get reads all ranges at one revision, linearizably. Errors: ErrUnreachable,
// ErrRefused.
func (c *Client) Get(ctx context.Context, ranges ...Range) (Reading, error) {
	ops := make([]clientv3.Op, len(ranges))
	for i, r := range ranges {
		ops[i] = r.op()
	}
	var resp *clientv3.TxnResponse
	err := c.call(ctx, "read "+ranges[0].Key, func(ctx context.Context) (err error) {
		resp, err = c.kv.Txn(ctx).Then(ops...).Commit()
		return err
	})
	if err != nil {
		return Reading{}, err
	}
	return reading(resp, len(ranges)), nil
}

func (r Range) op() clientv3.Op {
	var opts []clientv3.OpOption
	if r.Prefix {
		opts = append(opts, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
	}
	if r.KeysOnly {
		opts = append(opts, clientv3.WithKeysOnly())
	}
	if r.Limit > 0 {
		opts = append(opts, clientv3.WithLimit(r.Limit))
	}
	return clientv3.OpGet(r.Key, opts...)
}

func reading(resp *clientv3.TxnResponse, n int) Reading {
	out := Reading{Revision: resp.Header.Revision, Items: make([][]Item, n)}
	for i := range out.Items {
		kvs := resp.Responses[i].GetResponseRange().Kvs
		out.Items[i] = make([]Item, len(kvs))
		for j, kv := range kvs {
			out.Items[i][j] = Item{Key: string(kv.Key), Value: kv.Value, ModRevision: kv.ModRevision, CreateRevision: kv.CreateRevision}
		}
	}
	return out
}

// call makes tries until one succeeds, an error is for good, or time is up.
func (c *Client) call(ctx context.Context, op string, try func(context.Context) error) error {
	whole, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	var last error
	for n := 0; ; n++ {
		err := c.try(whole, c.limit(n), try)
		if err == nil {
			return nil
		}
		if last == nil || err != context.DeadlineExceeded { //nolint:errorlint // the bare one, which tells nothing
			last = err
		}
		switch {
		case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
			return fmt.Errorf("etcdkv: %s: %w", op, ctx.Err())
		case !temporary(err):
			return permanent(op, err)
		case !c.pause(whole, n):
			return c.unreachable(ctx, op, last)
		}
	}
}

// limit is the time of the n-th try, from 0.
func (c *Client) limit(n int) time.Duration {
	first := c.o.TryTimeout / 4
	if lately := time.Duration(c.latency.Load()); lately > 0 {
		first = min(first, max(8*lately, 100*time.Millisecond))
	}
	return min(c.o.TryTimeout, first<<min(n, 10))
}

// took notes how long a try took that succeeded.
func (c *Client) took(d time.Duration) {
	old := c.latency.Load()
	if old == 0 {
		old = int64(d)
	}
	c.latency.Store(max(1, old+(int64(d)-old)/8))
}

func (c *Client) try(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	var said said
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, saidKey{}, &said), limit)
	defer cancel()
	began := time.Now()
	err := try(ctx)
	if err == nil {
		c.took(time.Since(began))
	}
	if errors.Is(err, context.DeadlineExceeded) && said.err != nil {
		return &waitedError{said.err}
	}
	return err
}

// said keeps what gRPC said about a call. etcd's client replaces it by "context
// deadline exceeded", and with it goes the reason: no connection, refused.
type said struct{ err error }

type saidKey struct{}

// hear is the interceptor that fills said.
func hear(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, cc, opts...)
	if s, ok := ctx.Value(saidKey{}).(*said); ok && err != nil {
		s.err = err
	}
	return err
}

// waitedError is a try whose time was up, with the reason.
type waitedError struct{ reason error }

func (e *waitedError) Error() string {
	return strings.TrimPrefix(status.Convert(e.reason).Message(), "latest balancer error: ")
}

func (e *waitedError) Is(target error) bool { return target == context.DeadlineExceeded }

func (c *Client) unreachable(ctx context.Context, op string, last error) error {
	where := "in this process"
	if eps := c.endpoints(); len(eps) > 0 {
		where = "at " + strings.Join(eps, ", ")
	}
	err := fmt.Errorf("%w: %s: no answer from etcd %s: %w", ErrUnreachable, op, where, last)
	if ctx.Err() != nil && !errors.Is(last, ctx.Err()) {
		err = fmt.Errorf("%w (%w)", err, ctx.Err())
	}
	return err
}

// pause waits between tries, longer with every one up to a second, half of it
// by chance so that many clients do not come back at the same moment. It
// reports false when ctx ends first.
func (c *Client) pause(ctx context.Context, n int) bool {
	d := min(time.Second, 20*time.Millisecond<<min(n, 10))
	t := time.NewTimer(time.Duration(float64(d) * (0.5 + c.o.Rand()/2)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
