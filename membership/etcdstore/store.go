package etcdstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// Config says how to reach etcd; see Dial.
type Config = etcdkv.Config

// Dial returns an etcd client with settings that bring it back within a second
// after any failure (etcd's own leave it away for up to two minutes) and that
// notice a member which holds its connection open without answering. It does no
// I/O unless there is a user to log in. The caller closes it.
func Dial(c Config) (*clientv3.Client, error) {
	client, err := etcdkv.Dial(c)
	if err != nil {
		return nil, translate("dial", err)
	}
	return client, nil
}

// Options of a store. The zero value takes the defaults.
type Options struct {
	// Prefix is where clusters lie, "/shardd" by default: /NAME, or several.
	Prefix string
	// TTL is how long after its last sign a leader counts as gone; default
	// 5 s. A leader that dies is replaced after it. The lease is a second
	// shorter, as etcd ends leases late, but at least a second; etcd's own
	// least is 1.5 election timeouts, 2 s at its defaults.
	TTL time.Duration
	// Poll is the time between readings behind a watch; default 5 s.
	Poll time.Duration
	// TryTimeout and CallTimeout bound a try of a call and the whole call;
	// default 2 s and 10 s.
	TryTimeout, CallTimeout time.Duration
	// Logger; nil = none.
	Logger hclog.Logger
}

// Store is a directory of clusters in etcd, and the elector of their leaders.
// Safe for concurrent use. It does not own the client.
type Store struct {
	client    *clientv3.Client
	kv        *etcdkv.Client
	prefix    string
	directory string
	ttl       time.Duration
	log       hclog.Logger

	leftLock sync.Mutex
	left     []clientv3.LeaseID // of leaderships that ended while etcd was away

	editLock sync.Mutex
	edits    map[string][]*waiting // by cluster; an entry as long as its writer runs
}

var (
	_ membership.Directory = (*Store)(nil)
	_ membership.Elector   = (*Store)(nil)
)

// New returns the store behind client. It does no I/O. The error is about
// Options.Prefix.
func New(client *clientv3.Client, o Options) (*Store, error) {
	directory, err := etcdkv.DirectoryPrefix(o.Prefix)
	if err != nil {
		return nil, fmt.Errorf("etcdstore: %w: %w", membership.ErrInvalid, err)
	}
	if o.TTL <= 0 {
		o.TTL = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	log := o.Logger.Named("etcdstore")
	kv := etcdkv.New(client, etcdkv.Options{Poll: o.Poll, TryTimeout: o.TryTimeout, CallTimeout: o.CallTimeout, Logger: log})
	return &Store{client: client, kv: kv, prefix: o.Prefix, directory: directory, ttl: o.TTL, log: log,
		edits: map[string][]*waiting{}}, nil
}

// translate gives errors of etcdkv the names that callers decide by.
func translate(op string, err error) error {
	if err == nil {
		return nil
	}
	for _, pair := range [][2]error{
		{etcdkv.ErrCorrupt, membership.ErrCorrupt},
		{etcdkv.ErrConflict, membership.ErrConflict},
		{etcdkv.ErrMissing, membership.ErrConflict}, // it was there when the record was read
		{etcdkv.ErrUnreachable, membership.ErrUnreachable},
		{etcdkv.ErrTooLarge, membership.ErrTooLarge},
	} {
		if errors.Is(err, pair[0]) {
			return fmt.Errorf("etcdstore: %s: %w: %w", op, pair[1], err)
		}
	}
	return fmt.Errorf("etcdstore: %s: %w", op, err)
}

// Create makes an empty cluster; see membership.Directory.
func (s *Store) Create(ctx context.Context, d topology.Declared, by, why string) (membership.State, error) {
	state := membership.State{ID: topology.NewClusterID(), Epoch: 1, History: topology.NewHistory(), Declared: topology.Declared{Cluster: d.Cluster}}
	edit := membership.ReplaceAll(d)
	edit.By, edit.Why = by, why
	state, err := state.Apply(edit)
	if err != nil {
		return membership.State{}, fmt.Errorf("etcdstore: create: %w", err)
	}
	keys, err := etcdkv.NewKeys(s.prefix, d.Cluster)
	if err != nil {
		return membership.State{}, fmt.Errorf("etcdstore: create: %w: %w", membership.ErrInvalid, err)
	}
	meta, err := etcdkv.EncodeRecord(etcdkv.Meta{Format: etcdkv.Format, ID: state.ID, Epoch: state.Epoch, History: state.History})
	if err != nil {
		return membership.State{}, translate("create", err)
	}
	txn := etcdkv.Txn{
		If:      []etcdkv.Compare{{Key: keys.Meta()}, {Key: keys.Declared()}, {Key: keys.Head()}},
		Puts:    []etcdkv.Put{{Key: s.directory + d.Cluster, Value: []byte(state.ID.String())}, {Key: keys.Meta(), Value: meta}},
		Confirm: keys.Meta(),
	}
	err = s.commitDeclared(ctx, keys, state, txn, etcdkv.Declared{Edit: nonce()})
	if errors.Is(err, etcdkv.ErrConflict) {
		return membership.State{}, fmt.Errorf("etcdstore: create: %w: cluster %q", membership.ErrExists, d.Cluster)
	}
	return state, translate("create", err)
}

// commitDeclared writes the declared state of s along with txn. record names the
// write and those before it.
func (s *Store) commitDeclared(ctx context.Context, keys etcdkv.Keys, state membership.State, txn etcdkv.Txn, record etcdkv.Declared) error {
	data, err := etcdkv.EncodeDeclared(state.ID, state.Declared)
	if err != nil {
		return err
	}
	content := etcdkv.NewContent(data)
	notes, err := json.Marshal(state.Edits)
	if err != nil {
		return fmt.Errorf("notes: %w", err)
	}
	record.Generation, record.Digest, record.Notes = state.Generation, content.Digest, notes
	value, err := etcdkv.EncodeRecord(record)
	if err != nil {
		return err
	}
	parts, err := s.kv.Prepare(ctx, keys, []etcdkv.Content{content}, nil)
	if err != nil {
		return err
	}
	txn.If = append(txn.If, parts.If...)
	txn.Puts = append(append(txn.Puts, parts.Puts...), etcdkv.Put{Key: keys.Declared(), Value: value})
	_, err = s.kv.Commit(ctx, txn)
	return err
}

// nonce marks one edit, so that its author recognises it.
func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

// List returns the names of all clusters, ascending.
func (s *Store) List(ctx context.Context) ([]string, error) {
	r, err := s.kv.Get(ctx, s.names())
	if err != nil {
		return nil, translate("list", err)
	}
	return s.namesOf(r), nil
}

func (s *Store) names() etcdkv.Range {
	return etcdkv.Range{Key: s.directory, Prefix: true, KeysOnly: true}
}

func (s *Store) namesOf(r etcdkv.Reading) []string {
	names := make([]string, 0, len(r.Items[0]))
	for _, item := range r.Items[0] {
		name := strings.TrimPrefix(item.Key, s.directory)
		if topology.ValidateClusterName(name) == nil { // another key is not ours
			names = append(names, name)
		}
	}
	return names
}

// WatchNames calls fn with the names now and after every change.
func (s *Store) WatchNames(ctx context.Context, fn func([]string) error) error {
	var last []string
	return s.kv.Follow(ctx, []etcdkv.Range{s.names()}, s.tell("watch names", ""), func(r etcdkv.Reading) error {
		names := s.namesOf(r)
		if last != nil && strings.Join(names, "/") == strings.Join(last, "/") {
			return nil
		}
		last = names
		return fn(names)
	})
}

// tell returns a function that logs what a follower overcomes by itself, each
// kind of trouble once.
func (s *Store) tell(op, cluster string) func(error) {
	last := ""
	return func(err error) {
		if text := err.Error(); text != last {
			last = text
			s.log.Warn("trouble with etcd, going on", "op", op, "cluster", cluster, "error", err)
		}
	}
}

// Open returns the store of a cluster. It does no I/O.
func (s *Store) Open(name string) membership.ClusterStore {
	keys, err := etcdkv.NewKeys(s.prefix, name)
	return &cluster{s: s, name: name, keys: keys, err: err}
}
