package etcdkv_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/etcdkv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t testing.TB) *embedetcd.Server {
	t.Helper()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// TestManyFollowersEndAtOnce: a client without a socket hands its requests over
// a channel, and etcd's watch server answers over another with room for sixteen
// answers: many watches on one stream that are cancelled at once block both for
// ever. So every follower has a stream of its own.
func TestManyFollowersEndAtOnce(t *testing.T) {
	server := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var started, ended sync.WaitGroup
	for range 200 {
		c := etcdkv.New(server.Client(), etcdkv.Options{Poll: time.Hour}) // as separate stores have it
		started.Add(1)
		ended.Go(func() {
			var once sync.Once
			err := c.Follow(ctx, []etcdkv.Range{{Key: "k"}}, nil, func(r etcdkv.Reading) error {
				if r.First(0).ModRevision > 0 {
					once.Do(started.Done)
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Follow: %v", err)
			}
		})
	}
	time.Sleep(50 * time.Millisecond) // most watches stand
	if _, err := server.Client().Put(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	started.Wait()
	cancel()
	done := make(chan bool)
	go func() { ended.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("followers hang")
	}
}
