package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/shardd/shardd/internal/realserver"
)

// TestMemcached runs the example: the hit rate of real caches is 1 - movement.
func TestMemcached(t *testing.T) {
	r, err := run(t.Context(), io.Discard, 100_000)
	if errors.Is(err, realserver.ErrNotInstalled) && os.Getenv("SHARDD_REQUIRE_SERVICES") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if r.keys != 100_000 || r.movement < 0.15 || r.movement > 0.35 {
		t.Errorf("%+v: want 100,000 keys and about a quarter moved", r)
	}
	t.Log("\n" + out.String())
}

// TestPrintFails: half a point apart is a failure.
func TestPrintFails(t *testing.T) {
	if err := (result{keys: 1000, hits: 744, movement: 0.25}).print(io.Discard); err == nil {
		t.Error("0.6 points apart and no error")
	}
	if err := (result{keys: 1000, hits: 746, movement: 0.25}).print(io.Discard); err != nil {
		t.Errorf("0.4 points apart: %v", err)
	}
}
