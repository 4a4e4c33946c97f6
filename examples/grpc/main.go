// Command grpc shards gRPC calls over servers that report their load: each user's calls go
// to the server that owns the user; then a fourth server joins, and what goes over to it is
// what the published movement says; calls without a user go by Prequal, round a server that
// has become slow.
//
// The servers are in one process here, and its one method takes and returns well-known
// types, so that there is no generated code to look past.
//
//	go run ./examples/grpc
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/examples/internal/devserver"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/grpclb"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/sdk/loadfeed"
)

func main() {
	grpclb.Register() // once, before the first connection
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, 3000); err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, users int) error {
	url, stop, err := devserver.Start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	plane := devserver.Plane{URL: url, Cluster: "api"}
	var servers []*server
	var nodes []devserver.Node
	for i := range 4 {
		s, err := serve(fmt.Sprintf("api-%d", i+1))
		if err != nil {
			return err
		}
		defer s.stop()
		servers = append(servers, s)
		nodes = append(nodes, devserver.Node{ID: s.id, Addr: s.addr})
	}
	if _, err := plane.Declare(ctx, nodes[:3]); err != nil {
		return err
	}
	api, end, err := dial(ctx, url)
	if err != nil {
		return err
	}
	defer end()

	before, err := api.owners(ctx, users)
	if err != nil {
		return err
	}
	for _, s := range servers[:3] {
		fmt.Fprintf(out, "%s serves %d users\n", s.id, s.served.Swap(0))
	}
	edit, err := plane.AddNode(ctx, nodes[3])
	if err != nil {
		return err
	}
	if err := follow(ctx, api.client, edit.Version); err != nil {
		return err
	}
	after, err := api.owners(ctx, users)
	if err != nil {
		return err
	}
	moved := 0
	for user := range before {
		if before[user] != after[user] {
			moved++
		}
	}
	fmt.Fprintf(out, "api-4 joined: %.1f %% of the users moved, %.1f %% was published\n", 100*float64(moved)/float64(users), 100*edit.Movement.Ratio)
	return spread(ctx, out, api, servers)
}

// spread sends calls that any server can answer, while one is slow.
func spread(ctx context.Context, out io.Writer, api *client, servers []*server) error {
	servers[0].slow.Store(true)
	for _, s := range servers {
		s.served.Store(0)
	}
	const calls = 400
	var users sync.WaitGroup
	var failed atomic.Pointer[error]
	for range 8 {
		users.Go(func() {
			for range calls / 8 {
				if _, err := api.where(ctx, ""); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	users.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	fmt.Fprintf(out, "api-1 is slow: it got %.1f %% of the calls without a user\n", 100*float64(servers[0].served.Load())/calls)
	return nil
}

// client calls the one method.
type client struct {
	client *sdk.Client
	conn   *grpc.ClientConn
}

// dial follows the cluster and connects to its servers. end closes everything.
func dial(ctx context.Context, url string) (c *client, end func(), err error) {
	source, err := httpsource.New("api", []string{url})
	if err != nil {
		return nil, nil, err
	}
	clock := loadfeed.Clock()
	feed := loadfeed.New(clock, func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) })
	routes, err := sdk.New(source, sdk.WithClock(clock), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
	if err != nil {
		return nil, nil, err
	}
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := routes.WaitReady(ready); err != nil {
		routes.Close()
		return nil, nil, err
	}
	lb := grpclb.New(routes, grpclb.Config{Metadata: "user-id", Feed: feed, OutOfBand: 50 * time.Millisecond, MaxAge: 10 * time.Minute})
	conn, err := lb.NewClient(grpc.WithTransportCredentials(insecure.NewCredentials())) // was: grpc.NewClient(addr, ...)
	if err != nil {
		lb.Close()
		routes.Close()
		return nil, nil, err
	}
	return &client{routes, conn}, func() { conn.Close(); lb.Close(); routes.Close() }, nil
}

// where asks which server answers for a user, or for nobody.
func (c *client) where(ctx context.Context, user string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if user != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "user-id", user)
	}
	answer := new(wrapperspb.StringValue)
	err := c.conn.Invoke(ctx, method, &emptypb.Empty{}, answer)
	return answer.GetValue(), err
}

func (c *client) owners(ctx context.Context, users int) (map[string]string, error) {
	owners := make(map[string]string, users)
	for i := range users {
		user := fmt.Sprintf("user:%d", i)
		at, err := c.where(ctx, user)
		if err != nil {
			return nil, err
		}
		owners[user] = at
	}
	return owners, nil
}

// follow waits until calls go by the version.
func follow(ctx context.Context, c *sdk.Client, version string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	arrived := make(chan struct{})
	end := c.OnChange(func(ch sdk.Change) {
		if ch.To.Version().String() == version {
			close(arrived)
		}
	})
	defer end()
	select {
	case <-arrived:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("version %s has not arrived: %w", version, ctx.Err())
	}
}
