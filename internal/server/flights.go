package server

import (
	"sync"
	"time"
)

const (
	// editDrain is how long a server that ends goes on leading while edits that it
	// has taken wait for their version; without any it hands over at once.
	editDrain = 250 * time.Millisecond
	// editAnswer is how long it waits for the version of another leader then.
	editAnswer = 2 * time.Second
)

// flights counts the edits that have been handed to the store and are not answered
// yet.
type flights struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is 0 again; nil = nobody waits
}

// begin counts one; end is called when it is answered.
func (f *flights) begin() (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.end
}

func (f *flights) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

// wait returns when there are none, or after most.
func (f *flights) wait(most time.Duration) {
	f.mu.Lock()
	if f.n == 0 {
		f.mu.Unlock()
		return
	}
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	idle := f.idle
	f.mu.Unlock()
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}
