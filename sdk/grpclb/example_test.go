package grpclb_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/grpclb"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/sdk/loadfeed"
)

func Example() {
	grpclb.Register()
	source, err := httpsource.New("api", []string{"http://127.0.0.1:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.New(source)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	lb := grpclb.New(client, grpclb.Config{Metadata: "user-id"})
	defer lb.Close()
	conn, err := lb.NewClient(grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.Target()) // give conn to generated code: pb.NewAPIClient(conn)
	// Output: shardd:///cluster
}

// Two connections to each node, replaced after ten minutes or a million calls, and calls
// that go on to the next node while theirs is not connected.
func ExampleConfig() {
	cfg := grpclb.Config{
		Key: func(ctx context.Context, _ string) string {
			tenant, _ := ctx.Value(tenantKey{}).(string)
			return tenant
		},
		Next:        true,
		Conns:       2,
		MaxAge:      10 * time.Minute,
		MaxRequests: 1_000_000,
		Grace:       time.Minute,
	}
	fmt.Println(cfg.Key(context.WithValue(context.Background(), tenantKey{}, "acme"), "/api.Users/Get"))
	// Output: acme
}

type tenantKey struct{}

// Calls without a key by Prequal: the LB sends the probes that it asks for, and hands it
// the reports that servers stream out of band.
func ExampleLB() {
	grpclb.Register()
	source, err := httpsource.New("api", []string{"http://127.0.0.1:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	clock := loadfeed.Clock()
	feed := loadfeed.New(clock, func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) })
	client, err := sdk.New(source, sdk.WithClock(clock), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	lb := grpclb.New(client, grpclb.Config{Feed: feed, OutOfBand: time.Second})
	defer lb.Close()
	conn, err := lb.NewClient(grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.Target())
	// Output: shardd:///cluster
}
