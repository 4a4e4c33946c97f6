package pickers

import (
	"testing"

	"google.golang.org/grpc/balancer/leastrequest"
	"google.golang.org/grpc/balancer/ringhash"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/connectivity"
)

// Every picker can be built and asked by two goroutines at once.
func TestEverySubject(t *testing.T) {
	for _, s := range Subjects() {
		t.Run(s.Name+"/"+s.Clock, func(t *testing.T) {
			loop, end, err := s.New(10)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			done := make(chan bool)
			for g := range 2 {
				go func() {
					loop(uint64(g)<<40, 200, 1)
					done <- true
				}()
			}
			<-done
			<-done
		})
	}
}

// gRPC's policies see all nodes, and come to use all of them.
func TestGRPCUsesAllNodes(t *testing.T) {
	f := func(policy, config string) {
		t.Helper()
		c, err := connect(policy, config, 20)
		if err != nil {
			t.Fatal(err)
		}
		defer c.balancer.Close()
		infos := infos()
		if err := c.warm(policy, infos, 20); err != nil {
			t.Fatal(err)
		}
		if c.state != connectivity.Ready {
			t.Errorf("%s is %v", policy, c.state)
		}
		used := map[any]bool{}
		for _, info := range infos {
			r, err := c.current().Pick(info)
			if err != nil {
				t.Fatal(err)
			}
			used[r.SubConn] = true
		}
		if len(used) != 20 {
			t.Errorf("%s picks %d of 20 nodes", policy, len(used))
		}
	}
	f(roundrobin.Name, "")
	f(leastrequest.Name, `{"choiceCount": 2}`)
	f(weightedroundrobin.Name, `{"blackoutPeriod": "0s"}`)
	f(ringhash.Name, `{"minRingSize": 1024, "requestHashHeader": "x-key"}`)
}

func TestGRPCRefuses(t *testing.T) {
	if _, _, err := newGRPC("no such policy", "", 3); err == nil {
		t.Error("an unknown policy was built")
	}
	if _, _, err := newGRPC(leastrequest.Name, `{"choiceCount": "many"}`, 3); err == nil {
		t.Error("a broken configuration was taken")
	}
}

func TestScanTakesTheLeast(t *testing.T) {
	s := &scan{flight: []int{2, 1, 3}}
	if i := s.pick(); i != 1 || s.flight[1] != 2 {
		t.Errorf("picked %d: %v", i, s.flight)
	}
	s.done(0)
	if s.flight[0] != 1 {
		t.Errorf("done: %v", s.flight)
	}
}
