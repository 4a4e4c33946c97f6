package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shardd/shardd/sdk/grpclb"
)

func TestMain(m *testing.M) {
	grpclb.Register()
	os.Exit(m.Run())
}

// TestRun runs the example: users move as was published, and a slow server gets less than
// a quarter of what any can answer.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, 600); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	number := func(pattern string) float64 {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(out.String())
		if m == nil {
			t.Fatalf("nothing like %s", pattern)
		}
		f, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	users := number(`api-1 serves (\d+) users`) + number(`api-2 serves (\d+) users`) + number(`api-3 serves (\d+) users`)
	if users != 600 {
		t.Errorf("%v users", users)
	}
	seen, published := number(`joined: ([0-9.]+) %`), number(`moved, ([0-9.]+) %`)
	if published < 10 || seen < published-8 || seen > published+8 {
		t.Errorf("%v %% moved, %v %% was published", seen, published)
	}
	if share := number(`it got ([0-9.]+) %`); share > 17 {
		t.Errorf("the slow server got %v %%", share)
	}
}
