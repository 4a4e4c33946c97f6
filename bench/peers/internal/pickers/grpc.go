package pickers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	orca "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/leastrequest"
	"google.golang.org/grpc/balancer/ringhash"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/metadata"
)

// hashHeader is the header that ring_hash takes the key from.
const hashHeader = "x-key"

func grpcPickers() []Subject {
	f := func(name, policy, config, note string) Subject {
		return Subject{Name: "grpc-go " + name, Clock: "no", Note: note, New: func(n int) (Loop, func(), error) {
			return newGRPC(policy, config, n)
		}}
	}
	return []Subject{
		f("round_robin", roundrobin.Name, "", "counts nothing"),
		f("least_request_experimental", leastrequest.Name, `{"choiceCount": 2}`, ""),
		f("weighted_round_robin", weightedroundrobin.Name, `{"blackoutPeriod": "0s", "weightUpdatePeriod": "0.1s"}`,
			"weights from load reports, one a node; each end could carry another one"),
		f("ring_hash_experimental", ringhash.Name, `{"minRingSize": 1024, "requestHashHeader": "`+hashHeader+`"}`,
			"a lookup by key from the request's metadata; at most 4096 points in all"),
	}
}

// newGRPC builds the policy over n nodes that are all connected, and returns
// requests through its picker.
func newGRPC(policy, config string, n int) (Loop, func(), error) {
	conn, err := connect(policy, config, n)
	if err != nil {
		return nil, nil, err
	}
	infos := infos()
	if err := conn.warm(policy, infos, n); err != nil {
		conn.balancer.Close()
		return nil, nil, err
	}
	p := conn.current()
	return func(first uint64, requests, work int) {
		for k := first; k < first+uint64(requests); k++ {
			r, _ := p.Pick(infos[k%uint64(len(infos))])
			if work > 0 {
				spin(work)
			}
			if r.Done != nil {
				r.Done(balancer.DoneInfo{})
			}
		}
	}, conn.balancer.Close, nil
}

// infos are the requests of 1024 keys.
func infos() []balancer.PickInfo {
	list := make([]balancer.PickInfo, 1024)
	for i := range list {
		ctx := metadata.AppendToOutgoingContext(context.Background(), hashHeader, fmt.Sprintf("key:%012d", i))
		list[i] = balancer.PickInfo{FullMethodName: "/bench/Get", Ctx: ctx}
	}
	return list
}

// warm asks for each key until it is served: lazy policies connect when they
// are asked, in a goroutine of their own, and weights come with reports.
func (c *conn) warm(policy string, infos []balancer.PickInfo, n int) error {
	report := balancer.DoneInfo{}
	if policy == weightedroundrobin.Name {
		report.ServerLoad = &orca.OrcaLoadReport{RpsFractional: 100, CpuUtilization: .5}
	}
	const patience = 20_000 // tries, 1 s of waiting
	tries := 0
	for k := 0; k < max(len(infos), 4*n); {
		r, err := c.current().Pick(infos[k%len(infos)])
		switch {
		case err == nil:
			k++
			if r.Done != nil {
				r.Done(report)
			}
		case errors.Is(err, balancer.ErrNoSubConnAvailable) && tries < patience:
			tries++
			time.Sleep(50 * time.Microsecond)
			c.settle()
		default:
			return fmt.Errorf("pickers: %s: %w", policy, err)
		}
	}
	if policy == weightedroundrobin.Name {
		time.Sleep(250 * time.Millisecond) // two turns of its weight update
	}
	return nil
}

// parse returns the policy's configuration, if it has one.
func parse(b balancer.Builder, config string) (any, error) {
	p, ok := b.(balancer.ConfigParser)
	if !ok || config == "" {
		return nil, nil
	}
	return p.ParseConfig(json.RawMessage(config))
}
