package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestRun runs the example: each key is loaded once, and after the join again as many as
// the published movement says.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, 800); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	for _, want := range []string{"cache-1 loaded", "cache-2 loaded", "cache-3 loaded", "800 keys asked for at three nodes: 800 loads\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	m := regexp.MustCompile(`([0-9.]+) % of the keys were loaded anew, ([0-9.]+) % was published`).FindStringSubmatch(out.String())
	if m == nil {
		t.Fatal("no movement")
	}
	seen, err1 := strconv.ParseFloat(m[1], 64)
	published, err2 := strconv.ParseFloat(m[2], 64)
	if err1 != nil || err2 != nil || published < 10 || seen < published-7 || seen > published+7 {
		t.Errorf("%s %% loaded, %s %% published", m[1], m[2])
	}
}
