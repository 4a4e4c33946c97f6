package foreign

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// JSON of Envoy's API, in the order of its fields.
type (
	edsResponse struct {
		Resources []edsAssignment `json:"resources"`
	}
	edsAssignment struct {
		Type        string        `json:"@type"`
		ClusterName string        `json:"cluster_name"`
		Endpoints   []edsLocality `json:"endpoints"`
	}
	edsLocality struct {
		Locality  *edsZone      `json:"locality,omitempty"`
		Endpoints []edsEndpoint `json:"lb_endpoints"`
	}
	edsZone struct {
		Region  string `json:"region,omitempty"`
		Zone    string `json:"zone,omitempty"`
		SubZone string `json:"sub_zone,omitempty"`
	}
	edsEndpoint struct {
		Endpoint struct {
			Address edsAddress `json:"address"`
		} `json:"endpoint"`
		Health   string       `json:"health_status,omitempty"`
		Metadata *edsMetadata `json:"metadata,omitempty"`
		Weight   uint32       `json:"load_balancing_weight"`
	}
	edsAddress struct { // one of the two
		Socket *edsSocket `json:"socket_address,omitempty"`
		Pipe   *edsPipe   `json:"pipe,omitempty"`
	}
	edsSocket struct {
		Address string `json:"address"`
		Port    uint64 `json:"port_value"`
	}
	edsPipe struct {
		Path string `json:"path"`
	}
	edsMetadata struct {
		Filter struct {
			LB struct {
				HashKey string `json:"hash_key"`
			} `json:"envoy.lb"`
		} `json:"filter_metadata"`
	}
)

// assignmentType is what a resource of EDS is called.
const assignmentType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

// writeEnvoy writes a DiscoveryResponse, which Envoy reads from a file, with one
// ClusterLoadAssignment that has the text that each endpoint is hashed by.
func writeEnvoy(l *listing) error {
	c, err := l.foreignMode("envoy", topology.ModeEnvoyRing, topology.ModeEnvoyMaglev)
	if err != nil {
		return err
	}
	l.compat = c
	if c.Mode == topology.ModeEnvoyRing {
		hash := strings.ToUpper(strings.NewReplacer("xxh64", "xx_hash", "murmur2", "murmur_hash_2").Replace(c.Hash))
		l.note("the cluster must have lb_policy: RING_HASH with ring_hash_lb_config: {hash_function: %s, minimum_ring_size: %d, maximum_ring_size: %d}", hash, c.MinRingSize, c.MaxRingSize)
	} else {
		l.note("the cluster must have lb_policy: MAGLEV with maglev_lb_config: {table_size: %d}", c.TableSize)
	}
	a := edsAssignment{Type: assignmentType, ClusterName: l.o.Name}
	owners := l.owners()
	zones := zonesInRuns(owners)
	if !zones {
		l.note("zones are left out: they are not together in the list, and the order of endpoints is part of the mapping")
	}
	for i, n := range owners {
		e, err := l.edsEndpoint(c, n)
		if err != nil {
			return err
		}
		if i == 0 || zones && owners[i-1].Zone != n.Zone {
			a.Endpoints = append(a.Endpoints, edsLocality{Locality: edsZoneOf(n, zones)})
		}
		last := &a.Endpoints[len(a.Endpoints)-1]
		last.Endpoints = append(last.Endpoints, e)
		l.wrote = append(l.wrote, n.ID)
	}
	enc := json.NewEncoder(&l.b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(edsResponse{[]edsAssignment{a}})
}

func (l *listing) edsEndpoint(c topology.Foreign, n topology.Node) (edsEndpoint, error) {
	var e edsEndpoint
	var err error
	if e.Endpoint.Address, err = edsAddressOf(n); err != nil {
		return e, err
	}
	e.Weight = n.Weight
	if n.State == topology.StateDown {
		e.Health = "UNHEALTHY"
	}
	e.Metadata = new(edsMetadata)
	e.Metadata.Filter.LB.HashKey = c.HashedText(n)
	return e, nil
}

func edsAddressOf(n topology.Node) (edsAddress, error) {
	if path := strings.TrimPrefix(n.Addr, "unix:"); strings.HasPrefix(path, "/") {
		return edsAddress{Pipe: &edsPipe{path}}, nil
	}
	host, port, err := hostPort(n, "")
	if err != nil {
		return edsAddress{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return edsAddress{Socket: &edsSocket{host, number}}, err
}

// zonesInRuns says whether nodes of one zone stand together.
func zonesInRuns(nodes []topology.Node) bool {
	seen := make(map[string]bool)
	for i, n := range nodes {
		if i > 0 && nodes[i-1].Zone == n.Zone {
			continue
		}
		if seen[n.Zone] {
			return false
		}
		seen[n.Zone] = true
	}
	return true
}

func edsZoneOf(n topology.Node, zones bool) *edsZone {
	if !zones || n.Zone == "" {
		return nil
	}
	switch p := strings.SplitN(n.Zone, "/", 3); len(p) {
	case 3:
		return &edsZone{p[0], p[1], p[2]}
	case 2:
		return &edsZone{Region: p[0], Zone: p[1]}
	}
	return &edsZone{Zone: n.Zone}
}

// writeMcrouter writes a pool and a route to it.
func writeMcrouter(l *listing) error {
	l.note("nodes only: mcrouter maps keys by a hash of its own (ch3) over the list, so keys go elsewhere than here")
	v := struct {
		Pools map[string]struct {
			Servers []string `json:"servers"`
		} `json:"pools"`
		Route string `json:"route"`
	}{Pools: make(map[string]struct {
		Servers []string `json:"servers"`
	}), Route: "PoolRoute|" + l.o.Name}
	pool := v.Pools[l.o.Name]
	for _, n := range l.owners() {
		host, port, err := hostPort(n, "11211")
		if err != nil {
			return err
		}
		pool.Servers = append(pool.Servers, joinHostPort(host, port))
		l.wrote = append(l.wrote, n.ID)
	}
	v.Pools[l.o.Name] = pool
	enc := json.NewEncoder(&l.b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// rangesPerCommand keeps the lines of scattered slots, as the native ones are, at
// a length that every shell takes.
const rangesPerCommand = 200

// writeRedisCLI writes the commands that give each master its slots, in a cluster
// that has none yet. The native slots under crc16 are what Redis computes, too.
func writeRedisCLI(l *listing) error {
	native := l.spec.Algorithm == topology.Slots && l.spec.KeyHash == topology.CRC16 && l.spec.HashTag == "{}" && l.spec.SlotCount == topology.RedisSlots
	if !native {
		if _, err := l.foreignMode("a Redis Cluster", topology.ModeRedisSlots); err != nil {
			return refuse("%v; or take algorithm: slots with key_hash: crc16, which maps keys as Redis does", err)
		}
	}
	o := l.table.Topology().Object(topology.KindSlots)
	if o == nil || o.Size() != topology.RedisSlots {
		return fmt.Errorf("version %s has no table of %d slots", l.table.Topology().Version(), topology.RedisSlots)
	}
	ranges := make([][]string, l.table.Len())
	for first := 0; first < topology.RedisSlots; {
		owner, last := l.slotOwner(first), first
		for last+1 < topology.RedisSlots && l.slotOwner(last+1) == owner {
			last++
		}
		if owner < 0 {
			return fmt.Errorf("slot %d has no owner", first)
		}
		ranges[owner] = append(ranges[owner], fmt.Sprintf("%d %d", first, last))
		first = last + 1
	}
	l.b.WriteString("# gives each master its slots, in a cluster whose nodes have met and hold none (redis-server 7.0 and later)\n")
	for i, n := range l.table.Topology().Nodes() {
		if len(ranges[i]) == 0 {
			continue
		}
		host, port, err := hostPort(n, "6379")
		if err != nil {
			return err
		}
		for part := range slices.Chunk(ranges[i], rangesPerCommand) {
			fmt.Fprintf(&l.b, "redis-cli -h %s -p %s CLUSTER ADDSLOTSRANGE %s\n", host, port, strings.Join(part, " "))
		}
		l.wrote = append(l.wrote, n.ID)
	}
	return nil
}

// slotOwner returns the node of a slot: its number stands in the highest 14 bits
// of a key's hash.
func (l *listing) slotOwner(slot int) int { return l.table.Locate(uint64(slot) << 50) }
