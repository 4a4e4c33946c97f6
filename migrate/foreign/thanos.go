package foreign

import (
	"slices"

	"github.com/shardd/shardd/topology"
)

// parseThanos reads the endpoints of a hashring of Thanos Receive. How Thanos maps
// series (by labels and tenant) is no mode, so only the nodes are taken.
func parseThanos(data []byte, o Options) (*draft, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	if root.kind != list {
		return nil, fault(root.line, "", "want a list of hashrings, not %s", root.kindName())
	}
	names := make([]string, len(root.items))
	for i, ring := range root.items {
		if ring.kind != object {
			return nil, fault(ring.line, "", "want a hashring, not %s", ring.kindName())
		}
		name, _ := ring.get("hashring")
		names[i] = name.text
	}
	i, err := choose("hashrings", names, o)
	if err != nil {
		return nil, err
	}
	d := &draft{pool: names[i], spec: topology.Spec{Algorithm: topology.Ring}, nodesOnly: true}
	d.note("nodes only: Thanos maps series by their labels in a way that no mode has; the algorithm is ring, change it as you like")
	if err := root.items[i].unique(); err != nil {
		return nil, err
	}
	for _, f := range root.items[i].fields {
		switch {
		case f.name == "endpoints":
			err = d.thanosEndpoints(f)
		case !slices.Contains([]string{"hashring", "tenants", "tenant_matcher_type", "algorithm", "external_labels", "shuffle_sharding_config"}, f.name):
			err = fault(f.line, f.name, "unknown field of a hashring")
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// thanosEndpoints reads addresses, or objects with an address and a zone.
func (d *draft) thanosEndpoints(f member) error {
	if f.kind != list {
		return fault(f.line, f.name, "want a list, not %s", f.kindName())
	}
	for _, e := range f.items {
		n := topology.Node{Addr: e.text, Weight: 1}
		for _, p := range e.fields {
			switch p.name {
			case "address":
				n.Addr = p.text
			case "az":
				n.Zone = p.text
			case "capnproto_address":
			default:
				return fault(p.line, p.name, "unknown field of an endpoint")
			}
		}
		if n.Addr == "" {
			return fault(e.line, f.name, "an endpoint without an address")
		}
		d.add(e.line, n.Addr, n)
	}
	return nil
}
