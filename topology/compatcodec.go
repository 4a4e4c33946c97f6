package topology

import (
	"math"
	"slices"
)

// Tags of a foreign mapping's fields.
const (
	tagMode = 1 + iota
	tagDistribution
	tagForeignHash
	tagForeignTag
	tagAvalanche
	tagSortHosts
	tagForeignPoints
	tagMinRingSize
	tagMaxRingSize
	tagForeignTable
	tagSeed
	tagPartitions
	tagLoad
	tagDefaultPort
	tagInput
	tagDepth
	tagThreshold
)

var foreignTags = []uint64{tagMode, tagDistribution, tagForeignHash, tagForeignTag, tagAvalanche, tagSortHosts, tagForeignPoints, tagMinRingSize,
	tagMaxRingSize, tagForeignTable, tagSeed, tagPartitions, tagLoad, tagDefaultPort, tagInput, tagDepth, tagThreshold}

// texts and numbers are the fields of f by tag, those of one kind in one list,
// so that writing and reading cannot differ.
func (f *Foreign) texts() map[uint64]*string {
	return map[uint64]*string{tagDistribution: &f.Distribution, tagForeignHash: &f.Hash, tagForeignTag: &f.HashTag, tagSeed: &f.Seed, tagInput: &f.Input}
}

func (f *Foreign) flags() map[uint64]*bool {
	return map[uint64]*bool{tagAvalanche: &f.Avalanche, tagSortHosts: &f.SortHosts}
}

func (f *Foreign) numbers() map[uint64]*uint32 {
	return map[uint64]*uint32{tagForeignPoints: &f.Points, tagMinRingSize: &f.MinRingSize, tagMaxRingSize: &f.MaxRingSize, tagForeignTable: &f.TableSize,
		tagPartitions: &f.Partitions, tagDefaultPort: &f.DefaultPort, tagDepth: &f.Depth, tagThreshold: &f.Threshold}
}

func encodeForeign(f Foreign) []byte {
	var w writer
	texts, flags, numbers := f.texts(), f.flags(), f.numbers()
	for _, tag := range foreignTags {
		switch {
		case tag == tagMode:
			w.strField(tag, string(f.Mode))
		case tag == tagLoad:
			w.fixedField(tag, math.Float64bits(f.Load))
		case texts[tag] != nil:
			w.strField(tag, *texts[tag])
		case flags[tag] != nil && *flags[tag]:
			w.intField(tag, 1)
		case numbers[tag] != nil:
			w.intField(tag, uint64(*numbers[tag]))
		}
	}
	return w.b
}

func decodeForeign(r *reader) (f Foreign) {
	texts, flags, numbers := f.texts(), f.flags(), f.numbers()
	r.fields("compat", foreignTags, func(tag uint64, p *reader) {
		switch {
		case tag == tagMode:
			f.Mode = Mode(p.take(uint64(len(p.b))))
		case tag == tagLoad:
			f.Load = math.Float64frombits(p.fixed())
		case texts[tag] != nil:
			*texts[tag] = string(p.take(uint64(len(p.b))))
		case flags[tag] != nil:
			*flags[tag] = p.uint(1, "flag") == 1
		default:
			*numbers[tag] = uint32(p.uint(math.MaxUint32, "parameter"))
		}
	})
	return f
}

// encodePositions writes the position of each node, nothing if none has one.
func encodePositions(nodes []Node) []byte {
	if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Position != 0 }) {
		return nil
	}
	var w writer
	for _, n := range nodes {
		w.uvarint(uint64(n.Position))
	}
	return w.b
}

func decodePositions(r *reader, nodes []Node) {
	for i := range nodes {
		nodes[i].Position = uint32(r.uint(math.MaxUint32, "position"))
	}
}

// encodeSlotRanges writes the slots of each node, nothing if none names any.
func encodeSlotRanges(nodes []Node) []byte {
	if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Slots != "" }) {
		return nil
	}
	var w writer
	for _, n := range nodes {
		w.str(n.Slots)
	}
	return w.b
}

func decodeSlotRanges(r *reader, nodes []Node) {
	for i := range nodes {
		nodes[i].Slots = r.str()
	}
}
