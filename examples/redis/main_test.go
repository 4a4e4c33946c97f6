package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/shardd/shardd/internal/realserver"
)

// TestRun runs the example.
func TestRun(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), &out, 5000)
	if errors.Is(err, realserver.ErrNotInstalled) && os.Getenv("SHARDD_REQUIRE_SERVICES") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"redis-1 has", "redis-3 has", "redis-4 joined"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	t.Log("\n" + out.String())
}
