package httplb_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httplb"
	"github.com/shardd/shardd/sdk/httpsource"
)

func Example() {
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
	transport := httplb.New(client, httplb.Config{Key: httplb.KeyHeader("X-User"), MaxConns: 32, MaxRequests: 10_000})
	defer transport.Close()

	web := http.Client{Transport: transport}
	req, err := http.NewRequest(http.MethodGet, "http://api/profile", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("X-User", "42")
	resp, err := web.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	fmt.Println(errors.Is(err, sdk.ErrNotReady)) // there is no shardd here
	// Output: true
}

// A reverse proxy that shards by path.
func ExampleTransport_reverseProxy() {
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
	transport := httplb.New(client, httplb.Config{Key: httplb.KeyPath()})
	defer transport.Close()
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host // the transport knows the address
		r.SetXForwarded()
	}}
	_ = &http.Server{Addr: "127.0.0.1:8080", Handler: proxy}
	// Output:
}

// Connections that are warmed up, few, and replaced after ten minutes or ten thousand
// requests; a request goes to the next node if its own cannot be connected to.
func ExampleConfig() {
	cfg := httplb.Config{
		Key:         httplb.KeyHeader("X-Tenant"),
		WarmPath:    "/healthz",
		WarmUp:      2,
		MaxConns:    16,
		MaxAge:      10 * time.Minute,
		MaxRequests: 10_000,
		Tries:       2,
	}
	req := httptest.NewRequest(http.MethodGet, "http://api/", nil)
	req.Header.Set("X-Tenant", "acme")
	fmt.Println(cfg.Key(req))
	// Output: acme
}
