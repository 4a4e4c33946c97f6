package server_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership/memstore"
)

// TestHandoverWaitsForNobody: a server that ends hands its leaderships over at
// once, though a request is in flight whose body does not come.
func TestHandoverWaitsForNobody(t *testing.T) {
	store := memstore.New()
	r := run(t, server.Config{Directory: store, Elector: store, ShutdownTimeout: 20 * time.Second})
	r.put(declared(3))
	slow, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	_, err = slow.Write([]byte("PUT /v1/clusters/cache/spec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"))
	if err != nil {
		t.Fatal(err)
	}
	r.ready() // an answer later than the request above was accepted
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.stop()
	}()
	leading, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := store.Campaign(leading, "cache", "other")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Resign(t.Context())
	select {
	case <-ended:
		t.Error("the server waited for the request before it handed over, or for none")
	default:
	}
	slow.Close()
	<-ended
}
