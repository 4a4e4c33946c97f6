package topology

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"
)

var (
	genID    = rapid.StringMatching(`[!-+\--.0-~]{1,12}`).Filter(func(s string) bool { return ValidateNodeID(s) == nil })
	genText  = rapid.String().Filter(func(s string) bool { return printable("text", s, MaxNameLen) == nil })
	genState = rapid.Custom(func(t *rapid.T) State { return State(rapid.IntRange(0, int(numStates)-1).Draw(t, "state")) })
)

func genDigest(t *rapid.T, label string) (d Digest) {
	copy(d[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
	return d
}

func genSpec(t *rapid.T) Spec {
	s := Spec{
		Algorithm: rapid.SampledFrom(Algorithms()).Draw(t, "algorithm"),
		KeyHash:   rapid.SampledFrom([]KeyHash{XXH64, CRC16}).Draw(t, "key hash"),
		HashTag:   rapid.SampledFrom([]string{"", "{}", "<>", "||"}).Draw(t, "hash tag"),
		Replicas:  rapid.Uint32Range(0, MaxReplicas).Draw(t, "replicas"),
		ZoneAware: rapid.Bool().Draw(t, "zone aware"),
	}
	if rapid.Bool().Draw(t, "bounded") {
		s.BoundedLoad = rapid.Float64Range(1, MaxBoundedLoad).Draw(t, "bounded load")
	}
	// Parameters of all algorithms are drawn: Normal must clear the others.
	s.VNodes = rapid.Uint32Range(0, 400).Draw(t, "vnodes")
	s.TableSize = rapid.SampledFrom([]uint32{0, 3, 13, 251, 65537, MaxTableSize}).Draw(t, "table size")
	s.SlotCount = rapid.Uint32Range(0, MaxSlots).Draw(t, "slots")
	s.JumpUnit = rapid.Uint32Range(0, 256).Draw(t, "unit")
	s.JumpVariant = rapid.SampledFrom([]JumpVariant{"", JumpClassic, JumpBack}).Draw(t, "variant")
	s.RendezvousTable = rapid.SampledFrom([]uint32{0, 256, 1 << 20}).Draw(t, "table")
	if rapid.IntRange(0, 3).Draw(t, "foreign") == 0 {
		s.Algorithm, s.Compat = Compat, genForeign(t)
	}
	return s
}

// genForeign draws every parameter: Normal must clear those of other modes.
func genForeign(t *rapid.T) Foreign {
	mode := rapid.SampledFrom(Modes()).Draw(t, "mode")
	r := modeRules[mode]
	return Foreign{
		Mode:         mode,
		Distribution: rapid.SampledFrom(append([]string{""}, r.distributions...)).Draw(t, "distribution"),
		Hash:         rapid.SampledFrom(append([]string{""}, r.hashes...)).Draw(t, "hash"),
		HashTag:      rapid.SampledFrom([]string{"", "{}", "//"}).Draw(t, "foreign tag"),
		Avalanche:    rapid.Bool().Draw(t, "avalanche"),
		SortHosts:    rapid.Bool().Draw(t, "sort hosts"),
		Points:       rapid.Uint32Range(0, 200).Draw(t, "points"),
		MinRingSize:  rapid.Uint32Range(0, 1024).Draw(t, "smallest ring"),
		MaxRingSize:  rapid.SampledFrom([]uint32{0, 1024, 5000}).Draw(t, "largest ring"),
		TableSize:    rapid.SampledFrom([]uint32{0, 251, 65537}).Draw(t, "foreign table"),
		Seed:         rapid.SampledFrom([]string{"", "AAAAAAAAAAAAAAAA"}).Draw(t, "seed"),
		Partitions:   rapid.Uint32Range(0, 300).Draw(t, "partitions"),
		Load:         rapid.SampledFrom([]float64{0, 1.25, 2}).Draw(t, "load"),
		DefaultPort:  rapid.SampledFrom([]uint32{0, 11211}).Draw(t, "default port"),
		Input:        rapid.SampledFrom([]string{"uri", "uri-whole"}).Draw(t, "input"),
		Depth:        rapid.Uint32Range(0, 3).Draw(t, "depth"),
		Threshold:    rapid.Uint32Range(0, 100).Draw(t, "threshold"),
	}
}

func genNodes(t *rapid.T, most int) []Node {
	ids := rapid.SliceOfNDistinct(genID, 0, most, rapid.ID[string]).Draw(t, "ids")
	nodes := make([]Node, len(ids))
	for i, id := range ids {
		nodes[i] = Node{ID: id, Addr: genText.Draw(t, "addr"), Zone: genText.Draw(t, "zone"), Label: genText.Draw(t, "label"),
			Weight: rapid.Uint32Range(0, 100).Draw(t, "weight"), State: genState.Draw(t, "state")}
	}
	return nodes
}

func genObject(t *rapid.T, kind Kind) *Object {
	ids := rapid.SliceOfNDistinct(genID, 0, 20, rapid.ID[string]).Draw(t, "object ids")
	slices.Sort(ids)
	rows, size := rapid.IntRange(1, 3).Draw(t, "rows"), rapid.IntRange(0, 50).Draw(t, "size")
	entries := make([]uint16, rows*size)
	for i := range entries {
		if entries[i] = uint16(rapid.IntRange(0, len(ids)).Draw(t, "entry")); int(entries[i]) == len(ids) {
			entries[i] = NoOwner
		}
	}
	o, err := NewObject(kind, rows, ids, entries)
	if err != nil {
		t.Fatalf("NewObject: %v", err)
	}
	return o
}

func genObjects(t *rapid.T) []*Object {
	var objects []*Object
	for k := KindSlots; k <= maxKind; k++ {
		if rapid.Bool().Draw(t, "has "+k.String()) {
			objects = append(objects, genObject(t, k))
		}
	}
	return objects
}

// genDraft draws a draft that New takes.
func genDraft(t *rapid.T) Draft {
	d := Draft{
		Cluster: rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9._-]{0,20}`).Draw(t, "cluster"),
		ID:      ClusterID(genDigest(t, "id")),
		History: History(rapid.Uint64Range(1, math.MaxUint64).Draw(t, "history")),
		Version: Version{rapid.Uint64Range(1, math.MaxUint64).Draw(t, "epoch"), rapid.Uint64Range(1, math.MaxUint64).Draw(t, "seq")},
		Parent:  genDigest(t, "parent"),
		Spec:    genSpec(t),
		Nodes:   genNodes(t, 8),
		Objects: genObjects(t),
		Mapping: genDigest(t, "mapping"),
		Cause:   Cause{Kind: genText.Draw(t, "kind"), By: genText.Draw(t, "by"), Why: genText.Draw(t, "why"), At: rapid.Int64().Draw(t, "at")},
	}
	if d.ID.IsZero() {
		d.ID[0] = 1
	}
	for d.Spec.Normal().Algorithm == Maglev && d.Spec.Normal().TableSize < 8 || d.Spec.Normal().Algorithm == Slots && d.Spec.Normal().SlotCount < 8 {
		d.Spec.TableSize, d.Spec.SlotCount = 0, 0
	}
	for i := range d.Nodes { // texts that every mode takes, and positions in any order
		d.Nodes[i].Label = fmt.Sprint(100 + i)
		d.Nodes[i].Position = uint32(rapid.SampledFrom([]int{0, 50 - i, 100 + i}).Draw(t, "position"))
	}
	if d.Spec.Normal().Compat.Mode == ModeRedisSlots && len(d.Nodes) > 0 && rapid.Bool().Draw(t, "layout") {
		d.Nodes[0].Weight, d.Nodes[0].State, d.Nodes[0].Slots = 1, StateActive, "0-16383"
	}
	return d
}

// baseDraft is a legal draft for tests that change one thing of it.
func baseDraft() Draft {
	return Draft{
		Cluster: "cache", ID: ClusterID{1, 2, 3}, History: 7, Version: Version{2, 45}, Parent: Digest{9}, Mapping: Digest{8},
		Spec: Spec{Algorithm: Ring, HashTag: "{}", Replicas: 2, ZoneAware: true, BoundedLoad: 1.25},
		Nodes: []Node{
			{ID: "cache-b", Addr: "10.0.0.2:11211", Zone: "z2", Weight: 2, State: StateDown},
			{ID: "cache-a", Addr: "10.0.0.1:11211", Zone: "z1", Label: "old-a", Weight: 1},
		},
		Cause: Cause{Kind: "nodes added", By: "ops", Why: "growth", At: 1_700_000_000_000},
	}
}

func mustObject(kind Kind, rows int, nodes []string, entries []uint16) *Object {
	o, err := NewObject(kind, rows, nodes, entries)
	if err != nil {
		panic(fmt.Sprintf("test object: %v", err))
	}
	return o
}

func mustTopology(d Draft) *Topology {
	t, err := New(d)
	if err != nil {
		panic(fmt.Sprintf("test topology: %v", err))
	}
	return t
}

// slotsDraft is baseDraft under slots, with its table and one more.
func slotsDraft() Draft {
	d := baseDraft()
	d.Spec = Spec{Algorithm: Slots, SlotCount: 8, KeyHash: CRC16, HashTag: "{}"}
	ids := []string{"cache-a", "cache-b"}
	d.Objects = []*Object{
		mustObject(KindJump, 2, ids, []uint16{0, NoOwner, 1, 0, 1, 1}),
		mustObject(KindSlots, 1, ids, []uint16{0, 1, 1, 0, NoOwner, 1, 0, 1}),
	}
	return d
}
