package clusterfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shardd/shardd/topology"
)

// ketamaPoints is what Cache::Memcached::Fast calls points.
const ketamaPoints = "ketama_points"

// readCompat reads the block that names a foreign mapping. Which fields it may
// have depends on its mode, so that is looked for first.
func readCompat(f field) (topology.Foreign, error) {
	all := []string{"mode", ketamaPoints}
	for _, m := range topology.Modes() {
		for _, p := range m.Parameters() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	fs, err := fields(f.node(), f.path, all)
	if err != nil {
		return topology.Foreign{}, err
	}
	var c compat
	at := slices.IndexFunc(fs, func(g field) bool { return g.path == "compat.mode" })
	if at < 0 {
		return c.Foreign, fault(f.key, "compat.mode", "missing; name the foreign system: %s", modeNames())
	}
	if c.Mode, err = choice[topology.Mode](fs[at]); err != nil {
		return c.Foreign, err
	}
	if c.Mode.Parameters() == nil {
		return c.Foreign, faultErr(fs[at].at(), "compat.mode", unknown(fmt.Sprintf("unknown mode %q; known are %s", c.Mode, modeNames())))
	}
	for _, g := range fs {
		if err := c.field(g, strings.TrimPrefix(g.path, "compat.")); err != nil {
			return c.Foreign, err
		}
	}
	c.SetAvalanche(c.avalanche)
	return c.Foreign, nil
}

// compat is a block while it is read.
type compat struct {
	topology.Foreign
	avalanche *bool
}

func (c *compat) field(f field, name string) (err error) {
	if name == "mode" {
		return nil
	}
	if name == ketamaPoints && c.Mode == topology.ModeMemcachedFast {
		name = "points"
	}
	if !c.Mode.Has(name) {
		has := "none"
		if p := c.Mode.Parameters(); len(p) > 0 {
			has = strings.Join(p, ", ")
		}
		return fault(f.key, f.path, "mode %s has no such parameter; it has %s", c.Mode, has)
	}
	switch name {
	case "distribution", "hash_type", "compatibility":
		c.Distribution, err = choice[string](f)
	case "hash", "function":
		c.Hash, err = choice[string](f)
	case "hash_tag":
		c.HashTag, err = f.text()
	case "seed":
		c.Seed, err = choice[string](f)
	case "input":
		c.Input, err = f.text()
	case "avalanche":
		var on bool
		on, err = f.truth()
		c.avalanche = &on
	case "sort_hosts":
		c.SortHosts, err = f.truth()
	case "load":
		c.Load, err = f.number()
	default:
		err = c.number(f, name)
	}
	return err
}

func (c *compat) number(f field, name string) (err error) {
	least := uint32(1)
	if name == "points" && c.Mode == topology.ModeMemcachedFast || name == "depth" || name == "default_port" {
		least = 0
	}
	dst := map[string]*uint32{"points": &c.Points, "min_ring_size": &c.MinRingSize, "max_ring_size": &c.MaxRingSize, "table_size": &c.TableSize,
		"partitions": &c.Partitions, "default_port": &c.DefaultPort, "depth": &c.Depth, "threshold": &c.Threshold}[name]
	*dst, err = f.whole(least, math.MaxUint32)
	return err
}

func modeNames() string {
	var names []string
	for _, m := range topology.Modes() {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// formatCompat writes the block on one line: a flow map, of which every value
// is one that JSON has, in the order of the JSON view.
func formatCompat(f topology.Foreign) string {
	b, err := json.Marshal(f)
	if err != nil {
		return "{}" // of texts and numbers: cannot be
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var parts []string
	_, _ = dec.Token() // the brace
	for dec.More() {
		name, _ := dec.Token()
		value, _ := dec.Token()
		switch v := value.(type) {
		case string:
			parts = append(parts, fmt.Sprintf("%v: %s", name, scalar(v)))
		default:
			parts = append(parts, fmt.Sprintf("%v: %v", name, v))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
