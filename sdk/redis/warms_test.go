package redis

import "testing"

// TestWarms: no more are opened at a time than there may be, which would hold up the
// first command until the warm-up's time is over.
func TestWarms(t *testing.T) {
	f := func(cfg Config, want int) {
		t.Helper()
		if n := cfg.warms(); n != want {
			t.Errorf("%+v: %d, want %d", cfg, n, want)
		}
	}
	f(Config{}, 1)
	f(Config{WarmUp: 7}, 7)
	f(Config{WarmUp: 7, MaxConns: 2}, 2)
	f(Config{WarmUp: -1, MaxConns: 2}, -1)
}
