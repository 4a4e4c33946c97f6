package etcdkv

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Settings of every client, measured on etcd 3.7.3, whose own leave a client
// away for up to two minutes: gRPC's back-off then grows to 120 s, and nothing
// notices a peer that holds the connection open without answering.
const (
	maxReconnectDelay = time.Second
	minConnectTimeout = 3 * time.Second
	keepAliveTime     = 10 * time.Second // gRPC's least; smaller ones are raised to it
	keepAliveTimeout  = 3 * time.Second
	dialTimeout       = 5 * time.Second // bounds the log-in of Dial, nothing else
)

// Config says how to reach etcd.
type Config struct {
	// Endpoints are the members' client URLs or host:port; at least one.
	// Their order does not matter: all are connected to, and one that does
	// not answer is left out.
	Endpoints []string
	// TLS is used for https endpoints; nil = no TLS.
	TLS *tls.Config
	// Username and Password log in, if both are set.
	Username, Password string
	// Logger gets the client's own messages; nil = none.
	Logger hclog.Logger
}

// Dial returns a client with the settings above. It connects in the background
// and does no I/O itself, unless there is a user to log in. Close it.
func Dial(c Config) (*clientv3.Client, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("etcdkv: no etcd endpoints; name at least one")
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            c.Endpoints,
		TLS:                  c.TLS,
		Username:             c.Username,
		Password:             c.Password,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		MaxUnaryRetries:      2, // Client retries by itself, with a deadline for each try
		Logger:               ZapLogger(c.Logger, quieter),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(hear), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxReconnectDelay},
			MinConnectTimeout: minConnectTimeout,
		})},
	})
	if err != nil {
		if temporary(err) {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return nil, fmt.Errorf("etcdkv: dial %v: %w", c.Endpoints, err)
	}
	return client, nil
}
