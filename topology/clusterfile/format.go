package clusterfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// Format writes d as a cluster file that Parse reads back as the same (with a
// normal Spec), one node a line. A declaration without nodes is written too,
// though Parse refuses it. Format does not Validate.
func Format(d topology.Declared) []byte {
	s := d.Spec.Normal()
	var b bytes.Buffer
	fmt.Fprintf(&b, "cluster: %s\n", scalar(d.Cluster))
	if s.Algorithm == topology.Compat {
		fmt.Fprintf(&b, "compat: %s\n", formatCompat(s.Compat))
	} else {
		formatAlgorithm(&b, s)
	}
	fmt.Fprintf(&b, "replicas: %d\n", s.Replicas)
	fmt.Fprintf(&b, "bounded_load: %s\n", strconv.FormatFloat(s.BoundedLoad, 'f', -1, 64))
	fmt.Fprintf(&b, "zone_aware: %t\n", s.ZoneAware)
	if len(d.Nodes) == 0 {
		b.WriteString("nodes: []\n")
		return b.Bytes()
	}
	b.WriteString("nodes:\n")
	nodes := d.Nodes
	if s.Algorithm == topology.Compat { // the order of the file is that of the foreign system
		nodes = topology.InOrder(nodes)
	}
	for i, n := range nodes {
		fmt.Fprintf(&b, "  - {%s}\n", formatNode(n, i))
	}
	return b.Bytes()
}

func formatAlgorithm(b *bytes.Buffer, s topology.Spec) {
	fmt.Fprintf(b, "algorithm: %s\n", scalar(string(s.Algorithm)))
	switch s.Algorithm {
	case topology.Ring:
		fmt.Fprintf(b, "ring: {vnodes: %d}\n", s.VNodes)
	case topology.Jump:
		fmt.Fprintf(b, "jump: {variant: %s, unit: %d}\n", scalar(string(s.JumpVariant)), s.JumpUnit)
	case topology.Rendezvous:
		fmt.Fprintf(b, "rendezvous: {table: %d}\n", s.RendezvousTable)
	case topology.Maglev:
		fmt.Fprintf(b, "maglev: {table_size: %d}\n", s.TableSize)
	case topology.Slots:
		fmt.Fprintf(b, "slots: {count: %d}\n", s.SlotCount)
	}
	fmt.Fprintf(b, "key_hash: %s\n", scalar(string(s.KeyHash)))
	fmt.Fprintf(b, "hash_tag: %s\n", quote(s.HashTag))
}

// formatNode writes the node that stands at index i of the file.
func formatNode(n topology.Node, i int) string {
	parts := []string{"id: " + scalar(n.ID)}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+": "+scalar(value))
		}
	}
	add("addr", n.Addr)
	parts = append(parts, fmt.Sprintf("weight: %d", n.Weight))
	add("zone", n.Zone)
	add("label", n.Label)
	if n.State != topology.StateActive {
		add("state", n.State.String())
	}
	if n.Position != 0 && int(n.Position) != i+1 {
		parts = append(parts, fmt.Sprintf("position: %d", n.Position))
	}
	if n.Slots != "" {
		parts = append(parts, "slots: "+quote(n.Slots))
	}
	return strings.Join(parts, ", ")
}

// scalar writes text plain where no YAML reader could take it for something
// else, and quoted otherwise.
func scalar(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '-' && c != '_') {
			return quote(s)
		}
	}
	switch strings.ToLower(s) {
	case "", "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return quote(s)
	}
	return s
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // text always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
