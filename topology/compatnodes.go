package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits on what a foreign mapping adds to a node.
const (
	// MaxSlotText is the largest length in bytes of Node.Slots.
	MaxSlotText = 1 << 17
	// MaxPosition is the largest Node.Position.
	MaxPosition = 1 << 30
)

// InOrder returns nodes in the order of a foreign system's list: by position,
// those without one behind, by ID. The slice is new; positions are 1 and up as a
// topology would store them: a node without one gets the next after the largest.
func InOrder(nodes []Node) []Node {
	out := slices.Clone(nodes)
	last := uint32(0)
	for _, n := range out {
		last = max(last, n.Position)
	}
	slices.SortFunc(out, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Position-1, b.Position-1), strings.Compare(a.ID, b.ID)) // 0 comes last
	})
	for i := range out {
		if out[i].Position == 0 && last < MaxPosition+MaxNodes {
			last++
			out[i].Position = last
		}
	}
	return out
}

// placeNodes gives nodes, sorted by id, the form that spec stores: positions for
// all under a foreign mapping, neither positions nor slots under a native one.
func placeNodes(spec Spec, nodes []Node) {
	if spec.Algorithm != Compat {
		for i := range nodes {
			nodes[i].Position, nodes[i].Slots = 0, ""
		}
		return
	}
	for _, n := range InOrder(nodes) {
		i, _ := slices.BinarySearchFunc(nodes, n, compareIDs)
		nodes[i].Position = n.Position
	}
}

// validateForeign checks what a foreign mapping demands of its nodes.
func validateForeign(f Foreign, nodes []Node) error {
	position, text := make(map[uint32]int), make(map[string]int)
	for i, n := range nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		if err := n.validateForeign(f, path); err != nil {
			return err
		}
		if first, dup := position[n.Position]; dup && n.Position != 0 {
			return fieldErr(path+".position", "node %q: position %d is that of nodes[%d] already", n.ID, n.Position, first)
		}
		position[n.Position] = i
		label := f.HashedText(n)
		if first, dup := text[label]; dup && label != "" {
			return fieldErr(path+".label", "node %q hashes as %q, as nodes[%d] does, so one of them would own nothing; give them different addresses or labels", n.ID, label, first)
		}
		text[label] = i
	}
	if f.Mode == ModeRedisSlots {
		_, _, err := SlotLayout(nodes)
		return err
	}
	return nil
}

func (n Node) validateForeign(f Foreign, path string) error {
	if n.Position > MaxPosition {
		return fieldErr(path+".position", "node %q: position %d is more than %d", n.ID, n.Position, MaxPosition)
	}
	if n.Slots != "" && f.Mode != ModeRedisSlots {
		return fieldErr(path+".slots", "node %q: only nodes of mode %s have slots; remove them", n.ID, ModeRedisSlots)
	}
	switch f.Mode {
	case ModeHAProxy:
		if n.Label != "" {
			if id, err := strconv.ParseUint(n.Label, 10, 31); err != nil || id == 0 || strconv.FormatUint(id, 10) != n.Label {
				return fieldErr(path+".label", "node %q: label %q is no HAProxy server id; want a whole number from 1, or nothing for the place in the list", n.ID, n.Label)
			}
		}
		if n.Weight > 256 {
			return fieldErr(path+".weight", "node %q: weight %d is more than HAProxy's 256", n.ID, n.Weight)
		}
	case ModeLibketama:
		if text := f.HashedText(n); len(text) > 21 {
			return fieldErr(path+".addr", "node %q: address %q is longer than the 21 bytes that libketama keeps; give the part it hashes as label", n.ID, text)
		}
	case ModeRedisSlots:
		if len(n.Slots) > MaxSlotText {
			return fieldErr(path+".slots", "node %q: %d bytes of slot ranges are more than %d", n.ID, len(n.Slots), MaxSlotText)
		}
	}
	return nil
}

// HashedText returns the text that tells n from other nodes under f: its label,
// else its address, else its ID. Package compat makes the system's own label of
// it. It is "" where no text of a node is hashed, only its place.
func (f Foreign) HashedText(n Node) string {
	switch {
	case f.Mode == ModeRedisSlots || f.Mode == ModeGomemcache || f.Mode == ModeJump || f.Mode == ModeNginxHash || f.Mode == ModeNginxIPHash,
		f.Mode == ModeHAProxy && n.Label == "", f.Distribution == "modula" && f.Mode != ModeTwemproxy,
		f.Mode == ModeMemcachedFast && f.Points == 0:
		return ""
	case n.Label != "":
		return n.Label
	case f.Mode == ModeGoRedisRing, n.Addr == "":
		return n.ID
	}
	return n.Addr
}

// RedisSlots is the number of slots of a Redis Cluster.
const RedisSlots = 16_384

// SlotLayout returns the owner of each of the 16384 slots that the nodes name in
// Slots, as an index into nodes or NoOwner, and whether any node names some. A
// slot that two nodes name is refused with a *FieldError; one that no node names
// is not: the node that had it may be gone since the layout was taken.
func SlotLayout(nodes []Node) (owner []uint16, given bool, err error) {
	owner = slices.Repeat([]uint16{NoOwner}, RedisSlots)
	for i, n := range nodes {
		path := fmt.Sprintf("nodes[%d].slots", i)
		if n.Slots == "" {
			continue
		}
		given = true
		for _, part := range strings.FieldsFunc(n.Slots, func(r rune) bool { return r == ' ' || r == ',' }) {
			first, last, ok := parseRange(part)
			if !ok {
				return nil, true, fieldErr(path, "node %q: %q is no range of slots; want numbers from 0 to %d, such as 0-5460", n.ID, part, RedisSlots-1)
			}
			for s := first; s <= last; s++ {
				if owner[s] != NoOwner {
					return nil, true, fieldErr(path, "node %q: slot %d belongs to node %q already", n.ID, s, nodes[owner[s]].ID)
				}
				owner[s] = uint16(i)
			}
		}
	}
	return owner, given, nil
}

func parseRange(s string) (first, last int, ok bool) {
	a, b, ranged := strings.Cut(s, "-")
	if !ranged {
		b = a
	}
	x, errA := strconv.ParseUint(a, 10, 16)
	y, errB := strconv.ParseUint(b, 10, 16)
	return int(x), int(y), errA == nil && errB == nil && x <= y && y < RedisSlots
}
