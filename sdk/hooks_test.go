package sdk_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// talk is a hook of two kinds.
type talk struct {
	name string
	said *[]string
}

func (h talk) OnTaken(_, to topology.Ref, _ time.Duration) {
	*h.said = append(*h.said, fmt.Sprint(h.name, " took ", to.Version))
}

func (h talk) OnRefused(e *sdk.RefusedError) {
	*h.said = append(*h.said, fmt.Sprint(h.name, " refused ", e.Offered.Version))
}

// TestHook: hooks are called in order, whatever else there is.
func TestHook(t *testing.T) {
	l := newLine(t)
	var said []string
	c, f := start(t, sdk.WithHook(talk{"a", &said}, 5, "not a hook", talk{"b", &said}),
		sdk.WithHooks(sdk.Hooks{OnTaken: func(_, to topology.Ref, _ time.Duration) { said = append(said, fmt.Sprint("first ", to.Version)) }}))
	v1, v2 := l.ring(nodes(3)...), l.ring(nodes(4)...)
	mustGive(t, f, v1)
	mustGive(t, f, v2)
	if err := f.give(v1); !errors.Is(err, sdk.ErrOlder) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first 1.1", "a took 1.1", "b took 1.1", "first 1.2", "a took 1.2", "b took 1.2", "a refused 1.1", "b refused 1.1"}, said); diff != "" {
		t.Error(diff)
	}
	c.Close()
}
