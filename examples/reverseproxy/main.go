// Command reverseproxy is a sharding reverse proxy of a few lines, before three HTTP servers
// that report their load: a path belongs to one server, and goes to the next in order
// while that one is over its cap.
//
//	go run ./examples/reverseproxy
//	curl -i http://127.0.0.1:8080/user/1
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/signal"
	"time"

	"github.com/shardd/shardd/examples/internal/devserver"
	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httplb"
	"github.com/shardd/shardd/sdk/httpsource"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	addr, wait, err := run(ctx, "127.0.0.1:8080")
	if err == nil {
		fmt.Printf("try: curl -i http://%s/user/1\n", addr)
		<-ctx.Done()
		wait()
		return
	}
	fmt.Fprintln(os.Stderr, "reverseproxy:", err)
	os.Exit(1)
}

// run starts everything; wait ends it.
func run(ctx context.Context, listen string) (addr string, wait func(), err error) {
	var ends []func()
	wait = func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	}
	defer func() {
		if err != nil {
			wait()
		}
	}()
	url, stop, err := devserver.Start(ctx)
	if err != nil {
		return "", nil, err
	}
	ends = append(ends, stop)
	var nodes []devserver.Node
	for i := range 3 {
		id := fmt.Sprintf("web-%d", i+1)
		load := loadreport.New(loadreport.Config{})
		app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, id, "serves", r.URL.Path) })
		at, end, err := serve("127.0.0.1:0", load.Middleware(app))
		if err != nil {
			return "", nil, err
		}
		ends = append(ends, end)
		nodes = append(nodes, devserver.Node{ID: id, Addr: at})
	}
	if _, err := (devserver.Plane{URL: url, Cluster: "web"}).Declare(ctx, nodes); err != nil {
		return "", nil, err
	}
	source, err := httpsource.New("web", []string{url})
	if err != nil {
		return "", nil, err
	}
	client, err := sdk.New(source, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25, View: sdk.ReportedLoad}))
	if err != nil {
		return "", nil, err
	}
	ends = append(ends, func() { client.Close() })
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.WaitReady(ready); err != nil {
		return "", nil, err
	}
	transport := httplb.New(client, httplb.Config{Key: httplb.KeyPath(), Scheme: "http"})
	ends = append(ends, transport.Close)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host // the transport knows the address
		r.SetXForwarded()
	}}
	addr, end, err := serve(listen, proxy)
	if err != nil {
		return "", nil, err
	}
	ends = append(ends, end)
	return addr, wait, nil
}

// serve serves h until end is called.
func serve(listen string, h http.Handler) (addr string, end func(), err error) {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(ln) // ends with Close
	}()
	return ln.Addr().String(), func() { _ = s.Close(); <-ended }, nil
}
