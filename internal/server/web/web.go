// Package web is the page that shardd shows at "/": static files, embedded, that
// read the HTTP API from the browser. It makes no request of its own and holds
// no state.
package web

import (
	_ "embed" // for the page
	"net/http"
)

//go:embed index.html
var page []byte

// Handler serves the page. It may load nothing but itself and this server's API.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(page)
	})
}
