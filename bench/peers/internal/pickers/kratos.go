package pickers

import (
	"context"
	"fmt"

	"github.com/go-kratos/kratos/v2/registry"
	"github.com/go-kratos/kratos/v2/selector"
	kratosp2c "github.com/go-kratos/kratos/v2/selector/p2c"
	"github.com/go-kratos/kratos/v2/selector/random"
	kratoswrr "github.com/go-kratos/kratos/v2/selector/wrr"
)

func kratosPickers() []Subject {
	f := func(name, clock string, s func() selector.Selector) Subject {
		return Subject{Name: "kratos " + name, Clock: clock, New: func(n int) (Loop, func(), error) {
			loop, err := newKratos(n, s())
			return loop, none, err
		}}
	}
	return []Subject{
		f("p2c", "inside", func() selector.Selector { return kratosp2c.New() }),
		f("wrr", "inside", func() selector.Selector { return kratoswrr.New() }),
		f("random", "inside", func() selector.Selector { return random.New() }),
	}
}

// newKratos gives the nodes weights from 1 to 7.
func newKratos(n int, s selector.Selector) (Loop, error) {
	nodes := make([]selector.Node, n)
	for i := range nodes {
		addr := fmt.Sprintf("10.0.%d.%d:80", i>>8, i&255)
		nodes[i] = selector.NewNode("grpc", addr, &registry.ServiceInstance{
			ID: addr, Name: "bench", Metadata: map[string]string{"weight": fmt.Sprint(1 + i%7)},
		})
	}
	s.Apply(nodes)
	ctx := context.Background()
	if _, done, err := s.Select(ctx); err != nil {
		return nil, err
	} else {
		done(ctx, selector.DoneInfo{})
	}
	return func(_ uint64, requests, work int) {
		for range requests {
			_, done, _ := s.Select(ctx)
			if work > 0 {
				spin(work)
			}
			done(ctx, selector.DoneInfo{})
		}
	}, nil
}
