// Command follow is the least program that uses the SDK: it follows a cluster,
// says where keys go, and says so again whenever the cluster changes.
//
//	shardd dev                                   # in one shell
//	shardd apply -f examples/plan/now.yaml       # in another
//	go run ./examples/follow -cluster sessions user:1 user:2
//	shardd node add redis-e                      # and watch the keys that move
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
)

func main() {
	servers := flag.String("server", "127.0.0.1:7420", "addresses of shardd, joined by commas")
	cluster := flag.String("cluster", "cache", "name of the cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := follow(ctx, os.Stdout, *cluster, strings.Split(*servers, ","), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

// follow prints until ctx ends.
func follow(ctx context.Context, w io.Writer, cluster string, servers, keys []string) error {
	source, err := httpsource.New(cluster, servers)
	if err != nil {
		return err
	}
	client, err := sdk.New(source)
	if err != nil {
		return err
	}
	defer client.Close()
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.WaitReady(ready); err != nil {
		return err
	}
	stop := client.OnChange(func(c sdk.Change) {
		fmt.Fprintf(w, "version %s, %d nodes, %s\n", c.To.Version(), c.To.Len(), c.To.Cause().Kind)
		for _, key := range keys {
			r, err := client.Route(key) // no network, no lock: call it for every request
			if err != nil {
				fmt.Fprintf(w, "  %s: %v\n", key, err)
				continue
			}
			fmt.Fprintf(w, "  %s -> %s at %s\n", key, r.ID(), r.Addr())
		}
	})
	defer stop()
	<-ctx.Done()
	return nil
}
