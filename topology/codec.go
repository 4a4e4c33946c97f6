package topology

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

var topologyMagic = []byte("SHT\x01")

// Tags of the topology's fields.
const (
	tagCluster = 1 + iota
	tagID
	tagHistory
	tagEpoch
	tagSeq
	tagParent
	tagSpec
	tagNodes
	tagRefs
	tagMapping
	tagCause
	tagPositions
	tagSlotRanges
	tagTransition
	tagTenure
)

// Tags of the spec's fields.
const (
	tagAlgorithm = 1 + iota
	tagVNodes
	tagTableSize
	tagSlotCount
	tagJumpUnit
	tagJumpVariant
	tagRendezvousTable
	tagKeyHash
	tagHashTag
	tagReplicas
	tagZoneAware
	tagBoundedLoad
	tagCompat
)

// Tags of the cause's fields.
const (
	tagCauseKind = 1 + iota
	tagCauseBy
	tagCauseWhy
	tagCauseAt
)

// mappingVersion is written behind every algorithm's name ("ring/1"). A change
// of a native mapping raises it, and older releases then refuse the topology
// with ErrUnknown in place of computing other owners.
const mappingVersion = "/1"

func (t *Topology) encode() []byte {
	w := writer{b: slices.Clone(topologyMagic)}
	w.strField(tagCluster, t.d.Cluster)
	w.digestField(tagID, t.d.ID)
	w.fixedField(tagHistory, uint64(t.d.History))
	w.intField(tagEpoch, t.d.Version.Epoch)
	w.intField(tagSeq, t.d.Version.Seq)
	w.digestField(tagParent, t.d.Parent)
	w.bytesField(tagSpec, encodeSpec(t.d.Spec))
	w.bytesField(tagNodes, encodeNodes(t.d.Nodes))
	w.bytesField(tagRefs, encodeRefs(t.refs))
	w.digestField(tagMapping, t.d.Mapping)
	w.bytesField(tagCause, encodeCause(t.d.Cause))
	w.bytesField(tagPositions, encodePositions(t.d.Nodes))
	w.bytesField(tagSlotRanges, encodeSlotRanges(t.d.Nodes))
	w.bytesField(tagTransition, encodeTransition(t.d.Transition))
	w.bytesField(tagTenure, encodeTenure(t.d.Tenure))
	return w.b
}

func encodeSpec(s Spec) []byte {
	var w writer
	w.strField(tagAlgorithm, string(s.Algorithm)+mappingVersion)
	w.intField(tagVNodes, uint64(s.VNodes))
	w.intField(tagTableSize, uint64(s.TableSize))
	w.intField(tagSlotCount, uint64(s.SlotCount))
	w.intField(tagJumpUnit, uint64(s.JumpUnit))
	w.strField(tagJumpVariant, string(s.JumpVariant))
	w.intField(tagRendezvousTable, uint64(s.RendezvousTable))
	w.strField(tagKeyHash, string(s.KeyHash))
	w.strField(tagHashTag, s.HashTag)
	w.intField(tagReplicas, uint64(s.Replicas))
	if s.ZoneAware {
		w.intField(tagZoneAware, 1)
	}
	w.fixedField(tagBoundedLoad, math.Float64bits(s.BoundedLoad))
	w.bytesField(tagCompat, encodeForeign(s.Compat))
	return w.b
}

func encodeNodes(nodes []Node) []byte {
	if len(nodes) == 0 {
		return nil
	}
	var w writer
	w.uvarint(uint64(len(nodes)))
	for _, n := range nodes {
		w.str(n.ID)
		w.str(n.Addr)
		w.str(n.Zone)
		w.str(n.Label)
		w.uvarint(uint64(n.Weight))
		w.b = append(w.b, byte(n.State))
	}
	return w.b
}

func encodeRefs(refs []ObjectRef) []byte {
	if len(refs) == 0 {
		return nil
	}
	var w writer
	w.uvarint(uint64(len(refs)))
	for _, r := range refs {
		w.b = append(w.b, byte(r.Kind))
		w.b = append(w.b, r.Digest[:]...)
		w.uvarint(uint64(r.Length))
	}
	return w.b
}

func encodeCause(c Cause) []byte {
	var w writer
	w.strField(tagCauseKind, c.Kind)
	w.strField(tagCauseBy, c.By)
	w.strField(tagCauseWhy, c.Why)
	w.fixedField(tagCauseAt, uint64(c.At))
	return w.b
}

// Decode reads an encoding back, without the objects (see Attach). Bytes that
// are not exactly what Encode writes are refused with ErrCorrupt; an algorithm
// or field of a later release with ErrUnknown. Decode never panics. O(len(b)).
func Decode(b []byte) (*Topology, error) {
	rest, ok := bytes.CutPrefix(b, topologyMagic)
	if !ok {
		return nil, fmt.Errorf("%w: no topology header", ErrCorrupt)
	}
	d, refs, err := decodeFields(rest)
	if err != nil {
		return nil, err
	}
	t, err := build(d, refs)
	if err != nil {
		return nil, corrupt(err)
	}
	if !bytes.Equal(t.encoded, b) {
		return nil, fmt.Errorf("%w: topology is not in canonical form", ErrCorrupt)
	}
	return t, nil
}

var topologyTags = []uint64{tagCluster, tagID, tagHistory, tagEpoch, tagSeq, tagParent, tagSpec, tagNodes, tagRefs, tagMapping, tagCause, tagPositions, tagSlotRanges, tagTransition, tagTenure}

func decodeFields(b []byte) (d Draft, refs []ObjectRef, err error) {
	r := &reader{b: b}
	r.fields("topology", topologyTags, func(tag uint64, p *reader) {
		switch tag {
		case tagCluster:
			d.Cluster = string(p.take(uint64(len(p.b))))
		case tagID:
			d.ID = p.digest()
		case tagHistory:
			d.History = History(p.fixed())
		case tagEpoch:
			d.Version.Epoch = p.uvarint()
		case tagSeq:
			d.Version.Seq = p.uvarint()
		case tagParent:
			d.Parent = p.digest()
		case tagSpec:
			d.Spec = decodeSpec(p)
		case tagNodes:
			d.Nodes = decodeNodes(p)
		case tagRefs:
			refs = decodeRefs(p)
		case tagMapping:
			d.Mapping = p.digest()
		case tagCause:
			d.Cause = decodeCause(p)
		case tagPositions:
			decodePositions(p, d.Nodes)
		case tagSlotRanges:
			decodeSlotRanges(p, d.Nodes)
		case tagTransition:
			d.Transition = decodeTransition(p)
		case tagTenure:
			d.Tenure = decodeTenure(p)
		}
	})
	return d, refs, r.err
}

var specTags = []uint64{tagAlgorithm, tagVNodes, tagTableSize, tagSlotCount, tagJumpUnit, tagJumpVariant, tagRendezvousTable, tagKeyHash, tagHashTag, tagReplicas, tagZoneAware, tagBoundedLoad, tagCompat}

func decodeSpec(r *reader) (s Spec) {
	r.fields("spec", specTags, func(tag uint64, p *reader) {
		switch tag {
		case tagAlgorithm:
			name := string(p.take(uint64(len(p.b))))
			algorithm, ok := strings.CutSuffix(name, mappingVersion)
			s.Algorithm = Algorithm(algorithm)
			if !ok || s.Algorithm != Compat && !slices.Contains(Algorithms(), s.Algorithm) {
				p.err = fmt.Errorf("%w: algorithm %q", ErrUnknown, name)
			}
		case tagVNodes:
			s.VNodes = uint32(p.uint(math.MaxUint32, "vnodes"))
		case tagTableSize:
			s.TableSize = uint32(p.uint(math.MaxUint32, "table size"))
		case tagSlotCount:
			s.SlotCount = uint32(p.uint(math.MaxUint32, "slot count"))
		case tagJumpUnit:
			s.JumpUnit = uint32(p.uint(math.MaxUint32, "jump unit"))
		case tagJumpVariant:
			s.JumpVariant = JumpVariant(p.take(uint64(len(p.b))))
		case tagRendezvousTable:
			s.RendezvousTable = uint32(p.uint(math.MaxUint32, "rendezvous table"))
		case tagKeyHash:
			s.KeyHash = KeyHash(p.take(uint64(len(p.b))))
		case tagHashTag:
			s.HashTag = string(p.take(uint64(len(p.b))))
		case tagReplicas:
			s.Replicas = uint32(p.uint(MaxReplicas, "replicas"))
		case tagZoneAware:
			s.ZoneAware = p.uint(1, "zone aware") == 1
		case tagBoundedLoad:
			s.BoundedLoad = math.Float64frombits(p.fixed())
		case tagCompat:
			s.Compat = decodeForeign(p)
		}
	})
	return s
}

func decodeNodes(r *reader) []Node {
	nodes := make([]Node, r.count(6))
	for i := range nodes {
		nodes[i] = Node{ID: r.str(), Addr: r.str(), Zone: r.str(), Label: r.str(), Weight: uint32(r.uint(MaxWeight, "weight"))}
		if s := r.take(1); s != nil {
			nodes[i].State = State(s[0])
		}
		if r.err != nil {
			return nil
		}
	}
	return nodes
}

func decodeRefs(r *reader) []ObjectRef {
	refs := make([]ObjectRef, r.count(18))
	for i := range refs {
		if k := r.take(1); k != nil {
			refs[i].Kind = Kind(k[0])
		}
		refs[i].Digest = r.digest()
		refs[i].Length = uint32(r.uint(math.MaxUint32, "length"))
	}
	return refs
}

func decodeCause(r *reader) (c Cause) {
	r.fields("cause", []uint64{tagCauseKind, tagCauseBy, tagCauseWhy, tagCauseAt}, func(tag uint64, p *reader) {
		switch tag {
		case tagCauseKind:
			c.Kind = string(p.take(uint64(len(p.b))))
		case tagCauseBy:
			c.By = string(p.take(uint64(len(p.b))))
		case tagCauseWhy:
			c.Why = string(p.take(uint64(len(p.b))))
		case tagCauseAt:
			c.At = int64(p.fixed())
		}
	})
	return c
}

// corrupt marks a validation error met while decoding as ErrCorrupt, unless it
// says that something is unknown.
func corrupt(err error) error {
	if err == nil || errors.Is(err, ErrUnknown) || errors.Is(err, ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}
