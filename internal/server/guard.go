package server

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/shardd/shardd/internal/api"
)

// guard refuses what a web page could make a browser send here. A page cannot
// forge the Host header, but it can make a name of its own resolve to this
// address (DNS rebinding), so foreign names are refused; addresses are not names
// and cannot be rebound. A browser tells the page's own origin with every
// request that could do harm; nothing of ours sends one from elsewhere.
type guard struct {
	names    []string // lower case
	insecure bool
}

func newGuard(cfg Config) guard {
	g := guard{names: []string{"localhost"}, insecure: cfg.AllowInsecure}
	if host, err := os.Hostname(); err == nil && cfg.AllowInsecure {
		g.names = append(g.names, strings.ToLower(host))
	}
	for _, h := range cfg.AllowedHosts {
		g.names = append(g.names, strings.ToLower(strings.TrimSuffix(h, ".")))
	}
	return g
}

// check returns nil, or why the request is refused.
func (g guard) check(r *http.Request) *api.Error {
	if !g.allowed(r.Host) {
		return api.Errorf(api.CodeForbidden, "address the server as localhost or by its IP address, or allow the name with --allowed-host",
			"host %q is not one of this server's names", r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameHost(origin, r.Host) {
		return api.Errorf(api.CodeForbidden, "pages of other sites may not use this API", "request comes from origin %q", origin)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return api.Errorf(api.CodeForbidden, "pages of other sites may not use this API", "request comes from another site")
	}
	return nil
}

func (g guard) allowed(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil {
		return g.insecure || ip.IsLoopback()
	}
	return slices.Contains(g.names, strings.ToLower(strings.TrimSuffix(host, ".")))
}

func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
