package migrate_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/topology"
)

func ExampleNew() {
	files := map[string]string{
		"now.yaml":  "{cluster: cache, algorithm: slots, nodes: [{id: a}, {id: b}, {id: c}]}",
		"next.yaml": "{cluster: cache, algorithm: slots, nodes: [{id: a}, {id: b}, {id: c}, {id: d}]}",
	}
	loader := migrate.Loader{ReadFile: func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}}
	ctx := context.Background()
	from, err := loader.Source(ctx, "now.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	to, err := loader.Target(ctx, from, "next.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := migrate.New(from, to, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.4f of all keys move, at least %.4f must\n", plan.Report.Ratio, plan.Report.Minimum)

	keys, err := migrate.CountKeys(from.Table, to.Table, migrate.Keys(strings.NewReader("user:1\nuser:2\nuser:3\n"), false))
	fmt.Println(keys.Moved, "of", keys.Total, "keys move", err)
	// Output:
	// 0.2500 of all keys move, at least 0.2500 must
	// 1 of 3 keys move <nil>
}

// sides are a cluster of three nodes and the same with a fourth.
func sides() (from, to migrate.Side) {
	files := map[string]string{
		"now.yaml":  "{cluster: cache, algorithm: ring, nodes: [{id: a}, {id: b}, {id: c}]}",
		"next.yaml": "{cluster: cache, algorithm: ring, nodes: [{id: a}, {id: b}, {id: c}, {id: d}]}",
	}
	loader := migrate.Loader{ReadFile: func(path string) ([]byte, error) { return []byte(files[path]), nil }}
	from, to, err := loader.Sides(context.Background(), "now.yaml", "next.yaml")
	if err != nil {
		panic(err)
	}
	return from, to
}

// What the same change costs under each algorithm.
func ExampleCompare() {
	c, err := migrate.Compare(sides())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range c.Rows {
		r := row
		if r.Movement == nil {
			fmt.Println(r.Algorithm, "-", r.Note)
			continue
		}
		fmt.Printf("%-10s moves %.3f, at least %.3f; fullest node after %.2f x its share\n", r.Algorithm, r.Movement.Ratio, r.Movement.Minimum, r.PeakAfter)
	}
	// Output:
	// ring       moves 0.244, at least 0.250; fullest node after 1.07 x its share
	// jump       moves 0.250, at least 0.250; fullest node after 1.00 x its share
	// rendezvous moves 0.250, at least 0.250; fullest node after 1.00 x its share
	// maglev     moves 0.250, at least 0.250; fullest node after 1.00 x its share
	// slots      moves 0.250, at least 0.250; fullest node after 1.00 x its share
	// modulo     moves 0.750, at least 0.250; fullest node after 1.00 x its share
}

// What the change would do to the hit rate under recorded traffic, and in how many
// waves it should be made.
func ExampleTraffic() {
	from, to := sides()
	c, err := migrate.Compare(from, to)
	if err != nil {
		fmt.Println(err)
		return
	}
	trace := func(yield func([]byte, error) bool) { // your requests' keys, in their order
		for k := range 20_000 {
			if !yield(fmt.Append(nil, "user:", k*k%1009), nil) {
				return
			}
		}
	}
	traffic := migrate.Traffic{BytesPerKey: 2_000, Bandwidth: 100_000, MaxDip: 0.05}
	if err := traffic.AddTrace(trace); err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Forecast(from, to, &traffic); err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range c.Rows {
		if row.Planned {
			f := row.Forecast
			fmt.Printf("%s: hit rate %.2f dips by %.2f, back after %d requests; %d waves\n", row.Algorithm, f.HitRate, f.Dip, f.Recovery, f.Waves)
		}
	}
	// Output: ring: hit rate 1.00 dips by 0.29, back after 600 requests; 6 waves
}

// From a twemproxy pool to a cluster of one's own: one of the sides is a foreign
// configuration.
func ExampleImport() {
	files := map[string]string{
		"nutcracker.yml": "alpha:\n  listen: 127.0.0.1:22121\n  hash: fnv1a_64\n  distribution: ketama\n  servers:\n  - 10.0.0.1:11211:1\n  - 10.0.0.2:11211:1\n",
		"next.yaml":      "{cluster: cache, algorithm: ring, nodes: [{id: a, addr: '10.0.0.1:11211'}, {id: b, addr: '10.0.0.2:11211'}]}",
	}
	loader := migrate.Loader{
		ReadFile: func(path string) ([]byte, error) { return []byte(files[path]), nil },
		From:     migrate.Import{Format: foreign.Twemproxy, Pool: "alpha"},
	}
	from, err := loader.Source(context.Background(), "nutcracker.yml")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(from, from.Table.Topology().Spec().Compat.Mode, from.Table.Len())
	// Output: nutcracker.yml twemproxy 2
}

// published is what a server would answer.
type published map[topology.Version]*topology.Topology

func (p published) Topology(_ context.Context, v topology.Version) (*topology.Topology, error) {
	if t, ok := p[v]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("version %s is not kept", v)
}

// With a server a side is "current", or a version such as "1.2".
func ExampleVersions() {
	now, _ := sides()
	var versions migrate.Versions = published{{}: now.Table.Topology()}
	from, err := migrate.Loader{Versions: versions}.Source(context.Background(), "current")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(from.Table.Topology().Version(), from.Table.Len())

	_, err = migrate.Loader{Versions: versions}.Source(context.Background(), "1.7")
	fmt.Println(err)
	// Output:
	// 1.1 3
	// version 1.7 is not kept
}
