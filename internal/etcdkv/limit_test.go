package etcdkv

import (
	"testing"
	"time"
)

// TestLimit: the first try gets a multiple of what calls have taken lately, within
// bounds, and every further one twice as long.
func TestLimit(t *testing.T) {
	c := &Client{o: Options{}.withDefaults()}
	f := func(n int, want time.Duration) {
		t.Helper()
		if got := c.limit(n); got != want {
			t.Errorf("try %d after calls of %s: %s, want %s", n, time.Duration(c.latency.Load()), got, want)
		}
	}
	f(0, 500*time.Millisecond) // nothing is known
	f(1, time.Second)
	f(2, 2*time.Second)
	f(50, 2*time.Second)
	c.took(time.Millisecond)
	f(0, 100*time.Millisecond)
	f(3, 800*time.Millisecond)
	f(5, 2*time.Second)
	for range 100 {
		c.took(40 * time.Millisecond)
	}
	if got := c.limit(0); got < 300*time.Millisecond || got > 320*time.Millisecond {
		t.Errorf("after calls of 40 ms: %s", got)
	}
	c.took(time.Hour)
	f(0, 500*time.Millisecond)
}
