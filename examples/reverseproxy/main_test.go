package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestRun runs the example: every path is served by one server, and all of them serve.
func TestRun(t *testing.T) {
	addr, wait, err := run(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer wait()
	get := func(path string) string {
		t.Helper()
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, resp.Status, err)
		}
		server, _, _ := strings.Cut(string(b), " ")
		return server
	}
	seen := map[string]int{}
	for i := range 60 {
		path := "/user/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if first, second := get(path), get(path); first != second {
			t.Errorf("%s: %s and %s", path, first, second)
		} else {
			seen[first]++
		}
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
}
