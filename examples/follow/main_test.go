package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/shardd/shardd/examples/internal/devserver"
)

func TestFollow(t *testing.T) {
	url, stop, err := devserver.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	send(t, http.MethodPut, url+"/v1/clusters/c/spec", `{"cluster":"c","algorithm":"jump","nodes":[{"id":"a","addr":"10.0.0.1:80"}]}`)

	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx, write, "c", []string{url}, []string{"user:1"}) }()
	lines := bufio.NewScanner(read)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
	expect("version 1.1, 1 nodes, created")
	expect("  user:1 -> a at 10.0.0.1:80")
	send(t, http.MethodPost, url+"/v1/clusters/c/nodes/b/add", `{"addr":"10.0.0.2:80","weight":0}`)
	expect("version 1.2, 2 nodes, details changed")
	expect("  user:1 -> a at 10.0.0.1:80")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func send(t *testing.T, method, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: %s: %s", method, url, resp.Status, b)
	}
}
