package experiment

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// movement: what hash modulo nodes and a ring of MD5 points move from three nodes
// to four, and how even they are on three.
func movement() *Experiment {
	return &Experiment{
		Name: "movement", Page: "movement.md", About: "modulo against a ring: keys that move, and how even the nodes are",
		Defaults: Params{},
		Run:      runMovement,
	}
}

const movedKeys = 10000

// digest is an MD5 hash as one big-endian number.
type digest struct{ hi, lo uint64 }

func md5Of(s string) digest {
	sum := md5.Sum([]byte(s))
	return digest{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])}
}

func (d digest) modulo(n uint64) int { return int(bits.Rem64(d.hi, d.lo, n)) }

func nodeName(i int) string { return "node-" + string(rune('A'+i)) }

// md5Ring is a ring of n nodes whose points are the first 64 bits of MD5; labels
// gives those of a node.
func md5Ring(n int, labels func(node string) []string) (*ring.Ring, error) {
	var points []ring.Point
	for i := range n {
		for _, l := range labels(nodeName(i)) {
			points = append(points, ring.Point{Place: md5Of(l).hi, Owner: uint16(i)})
		}
	}
	slices.SortFunc(points, func(a, b ring.Point) int {
		if a.Place < b.Place {
			return -1
		}
		return 1
	})
	return ring.FromPoints(n, points)
}

func virtual(node string) []string {
	labels := make([]string, 150)
	for v := range labels {
		labels[v] = fmt.Sprintf("%s#%d", node, v)
	}
	return labels
}

func bare(node string) []string { return []string{node} }

func runMovement(_ context.Context, e *Env) ([]Row, error) {
	three, err := md5Ring(3, virtual)
	if err != nil {
		return nil, err
	}
	four, err := md5Ring(4, virtual)
	if err != nil {
		return nil, err
	}
	lone, err := md5Ring(3, bare)
	if err != nil {
		return nil, err
	}
	turns, err := picked("rr", e.Seed)
	if err != nil {
		return nil, err
	}
	chance, err := picked("random", e.Seed)
	if err != nil {
		return nil, err
	}
	moved := func(name string, from, to func(digest) int, want float64) Row {
		count, elsewhere := 0, 0
		for k := range movedKeys {
			d := md5Of("user-" + strconv.Itoa(k))
			if a, b := from(d), to(d); a != b {
				count++
				if b != 3 {
					elsewhere++
				}
			}
		}
		row := Row{Params: []Param{{"mapping", name}}, Metrics: []Metric{{"moved", float64(count)}, {"moved_to_old_nodes", float64(elsewhere)}}}
		row.Checks = []Check{exactly("moved", want)}
		if name != "modulo" {
			row.Checks = append(row.Checks, exactly("moved_to_old_nodes", 0))
		}
		return row
	}
	on := func(r *ring.Ring) func(digest) int { return func(d digest) int { return r.Locate(d.hi) } }
	byModulo := func(n uint64) func(digest) int { return func(d digest) int { return d.modulo(n) } }
	rows := []Row{
		moved("modulo", byModulo(3), byModulo(4), 7506),
		moved("ring, 150 points", on(three), on(four), 2097),
	}
	for _, u := range []struct {
		name  string
		owner func(digest) int
		check Check
	}{
		{"round robin", turns, writtenAs("sigma", .5, .05)},
		{"random", chance, atMost("sigma", 150)},
		{"ring, 150 points", on(three), writtenAs("sigma", 191.9, .05)},
		{"ring, 1 point", on(lone), writtenAs("sigma", 1724.9, .05)},
	} {
		rows = append(rows, Row{
			Params: []Param{{"mapping", u.name}}, Metrics: []Metric{{"sigma", sigma(u.owner)}}, Checks: []Check{u.check},
		})
	}
	return rows, nil
}

// picked deals keys out by a policy, whatever they are.
func picked(policy string, seed uint64) (func(digest) int, error) {
	set, err := sim.NewSet(3)
	if err != nil {
		return nil, err
	}
	p, err := newPicker(policy, set, setting{})
	dice := sim.NewDice(seed, 0)
	return func(digest) int {
		t, err := p.Pick(0, dice.Bits(), nil)
		if err != nil {
			return 0
		}
		return t.Index()
	}, err
}

// sigma is the population's standard deviation of the keys a node, of three.
func sigma(owner func(digest) int) float64 {
	var count [3]float64
	for k := range movedKeys {
		count[owner(md5Of("user-"+strconv.Itoa(k)))]++
	}
	sum := 0.0
	for _, x := range count {
		sum += (x - movedKeys/3.) * (x - movedKeys/3.)
	}
	return math.Sqrt(sum / 3)
}

// ringSize: Envoy's ring of 100 equal hosts at its default minimum of 1024.
func ringSize() *Experiment {
	return &Experiment{
		Name: "ring-size", Page: "ring.md", About: "Envoy's ring of 100 hosts at its default size: points and the fullest host",
		Uses:     []string{"n", "seeds"},
		Most:     mostNodes,
		Defaults: Params{N: []int{100}, Seeds: 11},
		Run:      runRingSize,
	}
}

func runRingSize(ctx context.Context, e *Env) ([]Row, error) {
	var cells []cell
	for _, n := range e.N {
		for _, least := range []uint32{1024, 16384} {
			row := Row{Params: []Param{{"n", n}, {"minimum_ring_size", int(least)}}}
			if n == 100 && least == 1024 {
				row.Checks = []Check{exactly("points", 11), between("peak/mean", 1.70, 2.05)}
			}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playRingSize(n, least, seed) }})
		}
	}
	return e.medians(ctx, cells)
}

func playRingSize(n int, least uint32, seed uint64) ([]Metric, error) {
	nodes := make([]topology.Node, n)
	for i := range nodes {
		nodes[i] = topology.Node{
			ID: fmt.Sprintf("host-%d", i), Addr: fmt.Sprintf("10.%d.%d.%d:11211", seed%256, i/256, i%256), Weight: 1,
		}
	}
	m, err := compat.New(topology.Foreign{Mode: topology.ModeEnvoyRing, MinRingSize: least, MaxRingSize: 8388608}, nodes)
	if err != nil {
		return nil, err
	}
	points := make([]float64, n)
	for _, owner := range m.Ring.Points() {
		points[owner]++
	}
	if slices.Min(points) != slices.Max(points) {
		return []Metric{{"points", math.NaN()}, {"peak/mean", math.NaN()}}, nil // the checks fail
	}
	const keys = 200_000
	count := make([]float64, n)
	for k := range keys {
		count[m.Ring.Locate(m.Hash.Sum("key-"+strconv.Itoa(k)))]++
	}
	return []Metric{{"points", points[0]}, {"peak/mean", slices.Max(count) / keys * float64(n)}}, nil
}
