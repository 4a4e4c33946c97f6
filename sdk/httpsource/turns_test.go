package httpsource

import (
	"testing"
	"time"
)

func TestTurns(t *testing.T) {
	now := time.Unix(1000, 0)
	tr := newTurns(3, func() float64 { return 0.5 })
	if tr.server() != 1 {
		t.Fatalf("the first server is %d", tr.server())
	}
	step := func(worked bool, retryAfter time.Duration, wantServer int, wantWait time.Duration) {
		t.Helper()
		wait := tr.ended(worked, retryAfter, now)
		if tr.server() != wantServer || wait != wantWait {
			t.Fatalf("server %d after %v, want %d after %v", tr.server(), wait, wantServer, wantWait)
		}
		now = now.Add(wait)
	}
	const ms = time.Millisecond
	step(false, 0, 2, 0)
	step(false, 0, 0, 0)
	step(false, 0, 1, 75*ms) // a full round: 100 ms, three quarters of it by chance
	step(true, 0, 1, 250*ms)
	step(false, 10*time.Second, 2, 0)
	step(false, 10*time.Second, 0, 0)
	step(false, 0, 0, 75*ms)                 // 1 and 2 are barred
	step(false, 10*time.Second, 1, 10175*ms) // all are barred: 1 is free first, 10 s and a half of 500 ms after it said so
	for range 30 {
		if wait := tr.ended(false, 0, now); wait > mostPause {
			t.Fatalf("pause of %v", wait)
		}
		now = now.Add(time.Minute)
	}
}

// TestTurnsReach: whatever fails, every server is tried within two rounds.
func TestTurnsReach(t *testing.T) {
	for servers := 1; servers < 6; servers++ {
		tr := newTurns(servers, func() float64 { return 0.99 })
		seen := map[int]bool{}
		for range 2 * servers {
			seen[tr.server()] = true
			tr.ended(false, 0, time.Unix(1000, 0))
		}
		if len(seen) != servers {
			t.Errorf("%d servers: tried %v", servers, seen)
		}
	}
}
