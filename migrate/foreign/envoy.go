package foreign

import (
	"slices"
	"strings"

	"github.com/shardd/shardd/topology"
)

// parseEnvoy reads a ClusterLoadAssignment, or those of a DiscoveryResponse, in
// the JSON form of protocol buffers with either spelling of names. Ring and table
// sizes stand elsewhere (o.Compat).
func parseEnvoy(data []byte, o Options) (*draft, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	all := []value{root}
	if list, ok := root.get("resources"); ok {
		all = list.items
	}
	names := make([]string, len(all))
	for i, a := range all {
		if a.kind != object {
			return nil, fault(a.line, "", "want a ClusterLoadAssignment, not %s", a.kindName())
		}
		name, _ := a.get("cluster_name", "clusterName")
		names[i] = name.text
	}
	i, err := choose("clusters", names, o)
	if err != nil {
		return nil, err
	}
	e := envoy{draft: &draft{pool: names[i], spec: topology.Spec{Algorithm: topology.Compat, Compat: o.Compat}}}
	if o.Compat.Mode == "" {
		e.spec.Compat.Mode = topology.ModeEnvoyRing
		e.note("the assignment does not say how the cluster balances; taken is ring_hash with rings of 1024 to 8388608 points (mode envoy-ring)")
	}
	if m := e.spec.Compat.Mode; m != topology.ModeEnvoyRing && m != topology.ModeEnvoyMaglev {
		return nil, fault(0, "", "mode %s is none of Envoy's; want %s or %s", m, topology.ModeEnvoyRing, topology.ModeEnvoyMaglev)
	}
	return e.draft, e.assignment(all[i])
}

// envoy is an assignment while it is read.
type envoy struct {
	*draft
	weighted int    // localities with a weight
	groups   int    // localities
	zone     string // of the locality being read
}

// each calls fn for every field of v under its name in snake case, and refuses
// unknown and repeated ones; passed are names that decide nothing.
func each(v value, passed string, fn func(f member) (known bool, err error)) error {
	if v.kind != object {
		return fault(v.line, "", "want an object, not %s", v.kindName())
	}
	v.fields = slices.Clone(v.fields)
	for i := range v.fields {
		v.fields[i].name = snake(v.fields[i].name)
	}
	if err := v.unique(); err != nil {
		return err
	}
	for _, f := range v.fields {
		known, err := fn(f)
		if err != nil {
			return err
		}
		if !known && !slices.Contains(strings.Fields(passed), f.name) {
			return fault(f.line, f.name, "unknown field; remove it if it decides nothing about where keys go")
		}
	}
	return nil
}

// snake writes lowerCamelCase as lower_camel_case.
func snake(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c |= 0x20
		}
		b.WriteByte(c)
	}
	return b.String()
}

func (e *envoy) assignment(v value) error {
	err := each(v, "cluster_name @type policy", func(f member) (bool, error) {
		switch f.name {
		case "endpoints":
			for _, l := range f.items {
				if err := e.locality(l); err != nil {
					return true, err
				}
			}
			return true, nil
		case "named_endpoints":
			return true, fault(f.line, f.name, "endpoints by name are not read; write them out where they are used")
		}
		return false, nil
	})
	if err == nil && e.weighted > 0 && e.groups > 1 {
		return fault(v.line, "load_balancing_weight", "weights of localities share out what no mode does; weigh the endpoints instead")
	}
	return err
}

func (e *envoy) locality(v value) error {
	e.zone = ""
	if p, ok := v.get("priority"); ok && p.text != "0" {
		e.noteOnce("endpoints of priority 1 and more take over when those of 0 fail, and are left out")
		return nil
	}
	var endpoints []value
	err := each(v, "priority proximity metadata", func(f member) (bool, error) {
		switch f.name {
		case "locality":
			e.zone = zoneOf(f.value)
		case "load_balancing_weight":
			e.weighted++
		case "lb_endpoints":
			endpoints = f.items
		case "load_balancer_endpoints", "leds_cluster_locality_config":
			return true, fault(f.line, f.name, "endpoints that stand elsewhere are not read; write them out as lb_endpoints")
		default:
			return false, nil
		}
		return true, nil
	})
	if len(endpoints) > 0 {
		e.groups++
	}
	for _, p := range endpoints {
		if err == nil {
			err = e.endpoint(p)
		}
	}
	return err
}

func zoneOf(locality value) string {
	var parts []string
	for _, names := range [][]string{{"region"}, {"zone"}, {"sub_zone", "subZone"}} {
		if v, ok := locality.get(names...); ok && v.text != "" {
			parts = append(parts, v.text)
		}
	}
	return strings.Join(parts, "/")
}

func (e *envoy) endpoint(v value) error {
	n := topology.Node{Weight: 1, Zone: e.zone}
	err := each(v, "", func(f member) (_ bool, err error) {
		switch f.name {
		case "endpoint":
			n.Addr, err = e.address(f.value)
		case "load_balancing_weight":
			if n.Weight, err = weight(f.text, 1, topology.MaxWeight); err != nil {
				err = fault(f.line, f.name, "%w", err)
			}
		case "health_status":
			n.State, err = envoyState(f)
		case "metadata":
			n.Label = hashKey(f.value)
		case "endpoint_name":
			err = fault(f.line, f.name, "endpoints by name are not read; write it out")
		default:
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return err
	}
	if n.Addr == "" {
		return fault(v.line, "endpoint", "without an address")
	}
	e.add(v.line, n.Addr, n)
	return nil
}

// hashKey returns metadata.filter_metadata["envoy.lb"].hash_key.
func hashKey(metadata value) string {
	filters, _ := metadata.get("filter_metadata", "filterMetadata")
	lb, _ := filters.get("envoy.lb")
	key, _ := lb.get("hash_key")
	return key.text
}

// envoyState maps the health of an endpoint, by name or number. The ring has
// healthy endpoints only.
func envoyState(f member) (topology.State, error) {
	switch strings.ToUpper(f.text) {
	case "UNKNOWN", "0", "HEALTHY", "1":
		return topology.StateActive, nil
	case "UNHEALTHY", "2", "TIMEOUT", "4", "DEGRADED", "5":
		return topology.StateDown, nil
	case "DRAINING", "3":
		return topology.StateDraining, nil
	}
	return 0, fault(f.line, f.name, "unknown health %q", f.text)
}

// address returns what Envoy hashes of an endpoint unless told otherwise.
func (e *envoy) address(endpoint value) (addr string, err error) {
	err = each(endpoint, "health_check_config additional_addresses", func(f member) (bool, error) {
		switch f.name {
		case "address":
			addr, err = envoyAddress(f.value)
			return true, err
		case "hostname":
			e.noteOnce("where the cluster sets use_hostname_for_hashing, hostnames are hashed; give them as labels")
			return true, nil
		}
		return false, nil
	})
	return addr, err
}

func envoyAddress(v value) (addr string, err error) {
	err = each(v, "", func(f member) (bool, error) {
		switch f.name {
		case "socket_address":
			addr, err = socketAddress(f.value)
			return true, err
		case "pipe":
			path, _ := f.get("path")
			addr = path.text
			return true, nil
		}
		return false, nil
	})
	return addr, err
}

func socketAddress(v value) (string, error) {
	host, _ := v.get("address")
	port, ok := v.get("port_value", "portValue")
	if !ok || host.text == "" || !validPort(port.text) {
		return "", fault(v.line, "socket_address", "want address and port_value")
	}
	if p, ok := v.get("protocol"); ok && !slices.Contains([]string{"TCP", "UDP", "0", "1"}, p.text) {
		return "", fault(p.line, "protocol", "unknown protocol %q", p.text)
	}
	return joinHostPort(host.text, port.text), nil
}
