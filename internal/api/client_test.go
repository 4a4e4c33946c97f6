package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// host runs a handler and returns its address.
func host(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(nil)
	s.Close()
	return s.Listener.Addr().String()
}

func clientFor(t *testing.T, servers ...string) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{Servers: servers, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// journal is what handlers note and tests read.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// take returns the lines so far and forgets them.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

func answerWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestReadsGoOn(t *testing.T) {
	var asked journal
	broken := host(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.note("broken")
		panic(http.ErrAbortHandler)
	})
	busy := host(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.note("busy")
		answerWith(503, `{"error":{"code":"store_unreachable","message":"etcd is away"}}`)(w, nil)
	})
	good := host(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.note("good")
		fmt.Fprint(w, `{"clusters":[{"name":"cache","version":"1.7"}]}`)
	})
	c := clientFor(t, nobody(t), broken, busy, good)
	for range 2 {
		got, err := c.Clusters(t.Context())
		if err != nil || len(got.Clusters) != 1 || got.Clusters[0].Version.Seq != 7 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if diff := cmp.Diff([]string{"broken", "busy", "good", "good"}, asked.take()); diff != "" {
		t.Fatal(diff)
	}
	_, err := clientFor(t, nobody(t), busy).Clusters(t.Context())
	if !errors.Is(err, membership.ErrUnreachable) || !strings.Contains(err.Error(), "etcd is away") || !strings.Contains(err.Error(), "is shardd running") {
		t.Fatal(err)
	}
}

// TestEditsAreNotRepeated: an edit that may have been carried out is not sent
// again; one that cannot have been is.
func TestEditsAreNotRepeated(t *testing.T) {
	var edits journal
	broken := host(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet { // it is well until it gets an edit
			edits.note("broken")
			panic(http.ErrAbortHandler)
		}
	})
	good := host(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		edits.note("good")
		_ = json.NewEncoder(w).Encode(EditResult{Cluster: "cache", Generation: 3})
	})
	weight := uint32(2)
	edit := func(c *Client) (EditResult, error) {
		return c.EditNode(t.Context(), "cache", "a", VerbWeight, NodeEdit{Weight: &weight}, EditOptions{})
	}
	_, err := edit(clientFor(t, broken, good))
	if sent := edits.take(); !errors.Is(err, membership.ErrUnreachable) || !slices.Equal(sent, []string{"broken"}) {
		t.Fatalf("%v after %v", err, sent)
	}
	got, err := edit(clientFor(t, nobody(t), good))
	if sent := edits.take(); err != nil || got.Generation != 3 || !slices.Equal(sent, []string{"good"}) {
		t.Fatalf("%+v, %v after %v", got, err, sent)
	}
}

func TestEditRequest(t *testing.T) {
	var sent journal
	addr := host(t, func(w http.ResponseWriter, r *http.Request) {
		sent.note(fmt.Sprint(r.Method, " ", r.URL.RequestURI(), " ", r.Header.Get("If-Match"), " ", r.Header.Get("Content-Type")))
		fmt.Fprint(w, `{}`)
	})
	c, err := NewClient(ClientConfig{Servers: []string{addr}, By: "ann@host"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tag := ETag{Version: topology.Version{Epoch: 1, Seq: 2}, Generation: 3}
	if _, err := c.EditNode(t.Context(), "cache", "a%b?c", VerbAdd, NodeEdit{Addr: "x"}, EditOptions{IfMatch: tag, Wait: 2 * time.Second, Why: "more room"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutSpec(t.Context(), topology.Declared{Cluster: "cache"}, EditOptions{Wait: -1}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`POST /v1/clusters/cache/nodes/a%25b%3Fc/add?by=ann%40host&wait=2s&why=more+room "1.2+3" application/json`,
		`PUT /v1/clusters/cache/spec?by=ann%40host&wait=0s  application/json`,
	}
	if diff := cmp.Diff(want, sent.take()); diff != "" {
		t.Fatal(diff)
	}
}

func TestAnswersOfOthers(t *testing.T) {
	f := func(status int, body string, want error, words ...string) {
		t.Helper()
		_, err := clientFor(t, host(t, answerWith(status, body))).Clusters(t.Context())
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%d %s: %v", status, body, err)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%d %s: %v does not say %q", status, body, err, w)
			}
		}
	}
	f(502, "<html>\nBad Gateway", ErrInternal, "502", "<html>", "is the address right?")
	f(503, "", membership.ErrUnreachable, "503")
	f(404, "404 page not found", ErrRefused, "404")
	f(302, "", nil, "302")
	f(200, "not JSON", nil, "cannot be read")
	f(200, `{"clusters":7}`, nil, "cannot be read")
	f(409, `{"error":{"code":"conflict","message":"m","hint":"h"}}`, membership.ErrConflict, "m (h)")
	f(409, `{"error":{}}`, membership.ErrConflict)
}

func TestHangingServer(t *testing.T) {
	hang := make(chan struct{})
	first := host(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	defer close(hang)
	second := host(t, answerWith(200, `{"clusters":[]}`))
	c, err := NewClient(ClientConfig{Servers: []string{first, second}, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Clusters(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err = NewClient(ClientConfig{Servers: []string{first}, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Clusters(t.Context()); !errors.Is(err, membership.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "50ms") {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Clusters(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, membership.ErrUnreachable) {
		t.Fatal(err)
	}
}

func TestWatchEnds(t *testing.T) {
	lines := func(all ...string) string {
		return host(t, func(w http.ResponseWriter, r *http.Request) {
			for _, l := range all {
				if l == "wait" {
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
					return
				}
				fmt.Fprintln(w, l)
			}
		})
	}
	f := func(addr string, want error, messages int) {
		t.Helper()
		got := 0
		err := clientFor(t, addr).Watch(t.Context(), "cache", topology.Ref{}, 100*time.Millisecond, func(Message) error { got++; return nil })
		if !errors.Is(err, want) || got != messages {
			t.Errorf("%v after %d messages, want %v after %d", err, got, want, messages)
		}
	}
	const beat = `{"type":"heartbeat","interval_ms":1}`
	f(lines(beat, beat), membership.ErrUnreachable, 2)
	f(lines(beat, "wait"), ErrSilent, 1)
	f(lines("wait"), ErrSilent, 0)
	f(lines(beat, "nonsense", beat), topology.ErrCorrupt, 1)
	f(lines(beat, `{"type":"end","error":{"code":"forked","message":"m"}}`, beat), ErrForked, 1)
	f(lines(`{"type":"end"}`), membership.ErrUnreachable, 0)
	f(lines(`{"type":"x","encoded":"`+strings.Repeat("A", 200_000)+`"}`), membership.ErrUnreachable, 1) // longer than the reader's buffer
	stop := errors.New("stop")
	if err := clientFor(t, lines(beat, "wait")).Watch(t.Context(), "cache", topology.Ref{}, 0, func(Message) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// TestHangingRival: a server that accepts and says nothing costs a read a moment,
// not the whole timeout; an edit is not sent to it if another one answers.
func TestHangingRival(t *testing.T) {
	stop := make(chan struct{})
	hangs := host(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	defer close(stop)
	var edits journal
	good := host(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			edits.note(r.Method)
		}
		fmt.Fprint(w, `{"clusters":[]}`)
	})
	c, err := NewClient(ClientConfig{Servers: []string{hangs, nobody(t), good}, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.EditNode(t.Context(), "cache", "a", VerbRemove, NodeEdit{}, EditOptions{}); err != nil || !slices.Equal(edits.take(), []string{"POST"}) {
		t.Errorf("edit: %v", err)
	}
	other, err := NewClient(ClientConfig{Servers: []string{hangs, good}, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Clusters(t.Context()); err != nil {
		t.Errorf("read: %v", err)
	}
}
