package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/realserver"
)

// TestRun runs the example.
func TestRun(t *testing.T) {
	const keys = 5000
	var out strings.Builder
	r, err := run(t.Context(), &out, keys, 1500*time.Millisecond)
	if errors.Is(err, realserver.ErrNotInstalled) && os.Getenv("SHARDD_REQUIRE_SERVICES") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"redis-1 has", "redis-3 has", "redis-4 joined", "redis-1 left"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if r.reads < 2*keys || r.missed != 0 || r.missedAfter > keys/10 || int(r.copied) < keys/10 {
		t.Errorf("%+v", r)
	}
	if r.stale != 0 || r.fence < keys/10 {
		t.Errorf("%+v", r)
	}
	t.Log("\n" + out.String())
}
