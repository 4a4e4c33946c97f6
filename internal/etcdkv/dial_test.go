package etcdkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"

	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/internal/etcdkv"
)

// TestWatch06: one endpoint accepts connections and never answers, one is
// closed, one works; in all six orders calls and followers work within 10 s.
// (Field case watch-06: calls hang for minutes although healthy endpoints are
// configured.)
func TestWatch06(t *testing.T) {
	server := start(t)
	hole, closed, good := "http://"+etcdtest.BlackHole(t), "http://"+etcdtest.FreeAddr(t), server.Endpoint()
	for _, order := range [][]string{{hole, closed, good}, {hole, good, closed}, {closed, hole, good}, {closed, good, hole}, {good, hole, closed}, {good, closed, hole}} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			client, err := etcdkv.Dial(etcdkv.Config{Endpoints: order})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			c := etcdkv.New(client, etcdkv.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for range 5 {
				if _, err := c.Get(ctx, etcdkv.Range{Key: "k"}); err != nil {
					t.Fatalf("order %v: %v", order, err)
				}
			}
			seen := errors.New("seen")
			err = c.Follow(ctx, []etcdkv.Range{{Key: t.Name()}}, nil, func(r etcdkv.Reading) error {
				if r.First(0).ModRevision > 0 {
					return seen
				}
				_, err := c.Commit(ctx, etcdkv.Txn{Puts: []etcdkv.Put{{Key: t.Name(), Value: []byte("v")}}})
				return err
			})
			if !errors.Is(err, seen) {
				t.Errorf("order %v: Follow: %v", order, err)
			}
		})
	}
}

// TestFollowThroughRestarts: the connection is cut and comes back, again and
// again; a follower misses nothing in the end and needs a second at most.
func TestFollowThroughRestarts(t *testing.T) {
	server := start(t)
	direct := etcdkv.New(server.Client(), etcdkv.Options{})
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint(), "http://"))
	client, err := etcdkv.Dial(etcdkv.Config{Endpoints: []string{proxy.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	got := make(chan string, 100)
	done := make(chan error, 1)
	go func() {
		done <- etcdkv.New(client, etcdkv.Options{Poll: time.Hour}).Follow(ctx, []etcdkv.Range{{Key: "k"}}, nil, func(r etcdkv.Reading) error {
			got <- string(r.First(0).Value)
			return nil
		})
	}()
	<-got
	for i := range 5 {
		proxy.Cut(true)
		want := fmt.Sprint(i)
		if _, err := direct.Commit(ctx, etcdkv.Txn{Puts: []etcdkv.Put{{Key: "k", Value: []byte(want)}}}); err != nil {
			t.Fatal(err)
		}
		if i == 3 { // field case watch-01: compacted while away
			resp, err := server.Client().Put(ctx, "k", want)
			if err == nil {
				_, err = server.Client().Compact(ctx, resp.Header.Revision)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		proxy.Cut(false)
		for v := range got {
			if v == want {
				break
			}
		}
	}
	cancel()
	<-done
}

func TestZapLogger(t *testing.T) {
	var out bytes.Buffer
	l := etcdkv.ZapLogger(hclog.New(&hclog.LoggerOptions{Name: "etcd", Output: &out, Level: hclog.Debug, DisableTime: true}), func(level hclog.Level, message string) hclog.Level {
		switch message {
		case "drop":
			return hclog.Off
		case "lower":
			return hclog.Debug
		}
		return level
	})
	l.With(zap.String("member", "m")).Warn("hello", zap.Int("n", 3), zap.Error(errors.New("boom")))
	l.Error("drop")
	l.Error("lower")
	l.Debug("detail", zap.Duration("took", time.Second))
	want := "[WARN]  etcd: hello: member=m n=3 error=boom\n[DEBUG] etcd: lower\n[DEBUG] etcd: detail: took=1s\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	etcdkv.ZapLogger(nil, nil).Error("nowhere")
}
