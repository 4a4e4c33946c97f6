package etcdkv

import clientv3 "go.etcd.io/etcd/client/v3"

// NewWith is New over parts of a client, for tests that lose answers.
func NewWith(kv clientv3.KV, w clientv3.Watcher, o Options) *Client {
	return &Client{kv: kv, watcher: w, endpoints: func() []string { return []string{"fake:1"} }, o: o.withDefaults()}
}

// Pack is pack, for tests.
func Pack(data []byte) ([][]byte, error) { return pack(data) }
