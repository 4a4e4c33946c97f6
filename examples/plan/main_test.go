package main

import (
	"strings"
	"testing"

	"github.com/shardd/shardd/migrate"
)

func TestPlan(t *testing.T) {
	var out strings.Builder
	if err := plan(&out, migrate.Loader{}, "now.yaml", "next.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nodes added: 40.00 % of the keys move, at least 40.00 % must\n", "redis-d    0.00 % ->  40.00 %\n", "slots        40.00 %\n", "modulo       75.00 %\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	if err := plan(&out, migrate.Loader{}, "missing.yaml", "next.yaml"); err == nil {
		t.Error("a missing file and no error")
	}
}
