package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// The JSON view has the field names of a cluster file. It is for people and
// programs that look; what is digested and compared is the canonical encoding.

type specJSON struct {
	Algorithm   Algorithm       `json:"algorithm,omitempty"`
	Compat      *Foreign        `json:"compat,omitempty"`
	Ring        *ringJSON       `json:"ring,omitempty"`
	Jump        *jumpJSON       `json:"jump,omitempty"`
	Rendezvous  *rendezvousJSON `json:"rendezvous,omitempty"`
	Maglev      *maglevJSON     `json:"maglev,omitempty"`
	Slots       *slotsJSON      `json:"slots,omitempty"`
	KeyHash     KeyHash         `json:"key_hash,omitempty"`
	HashTag     *string         `json:"hash_tag,omitempty"`
	Replicas    *uint32         `json:"replicas,omitempty"`
	BoundedLoad float64         `json:"bounded_load"`
	ZoneAware   bool            `json:"zone_aware"`
}

type ringJSON struct {
	VNodes *uint32 `json:"vnodes,omitempty"`
}

type jumpJSON struct {
	Variant JumpVariant `json:"variant,omitempty"`
	Unit    *uint32     `json:"unit,omitempty"`
}

type rendezvousJSON struct {
	Table uint32 `json:"table"`
}

type maglevJSON struct {
	TableSize *uint32 `json:"table_size,omitempty"`
}

type slotsJSON struct {
	Count *uint32 `json:"count,omitempty"`
}

// DefaultHashTag is the hash tag that a cluster file means when it names none:
// "{}" for crc16, as Redis Cluster has it, else "".
func DefaultHashTag(h KeyHash) string {
	if h == CRC16 {
		return "{}"
	}
	return ""
}

func (s Spec) view() specJSON {
	s = s.Normal()
	v := specJSON{Algorithm: s.Algorithm, KeyHash: s.KeyHash, HashTag: &s.HashTag,
		Replicas: &s.Replicas, BoundedLoad: s.BoundedLoad, ZoneAware: s.ZoneAware}
	switch s.Algorithm {
	case Compat:
		v.Algorithm, v.HashTag, v.Compat = "", nil, &s.Compat
	case Ring:
		v.Ring = &ringJSON{&s.VNodes}
	case Jump:
		v.Jump = &jumpJSON{s.JumpVariant, &s.JumpUnit}
	case Rendezvous:
		v.Rendezvous = &rendezvousJSON{s.RendezvousTable}
	case Maglev:
		v.Maglev = &maglevJSON{&s.TableSize}
	case Slots:
		v.Slots = &slotsJSON{&s.SlotCount}
	}
	return v
}

// MarshalJSON writes the normal form with the field names of a cluster file.
func (s Spec) MarshalJSON() ([]byte, error) { return json.Marshal(s.view()) }

// UnmarshalJSON reads what MarshalJSON writes. Absent fields get their
// defaults (see DefaultHashTag for the hash tag). Unknown fields, and the
// parameters of another algorithm than the chosen one, are refused. It does
// not Validate.
func (s *Spec) UnmarshalJSON(b []byte) error {
	var v specJSON
	if err := strictJSON(b, &v); err != nil {
		return err
	}
	spec, err := v.spec()
	if err != nil {
		return err
	}
	*s = spec
	return nil
}

func (v specJSON) spec() (Spec, error) {
	if v.Compat != nil {
		return v.foreign()
	}
	s := Spec{Algorithm: v.Algorithm, KeyHash: v.KeyHash, BoundedLoad: v.BoundedLoad, ZoneAware: v.ZoneAware}
	setDefault(&s.KeyHash, XXH64)
	s.HashTag = DefaultHashTag(s.KeyHash)
	if v.HashTag != nil {
		s.HashTag = *v.HashTag
	}
	blocks := map[Algorithm]bool{Ring: v.Ring != nil, Jump: v.Jump != nil, Rendezvous: v.Rendezvous != nil,
		Maglev: v.Maglev != nil, Slots: v.Slots != nil}
	for _, a := range Algorithms() {
		if blocks[a] && a != v.Algorithm {
			return Spec{}, fieldErr(string(a), "parameters of %s, but the algorithm is %q; remove them", a, v.Algorithm)
		}
	}
	err := s.take(v)
	return s.Normal(), err
}

// take copies the parameters that v gives and refuses an explicit 0 where 0
// would silently mean the default.
func (s *Spec) take(v specJSON) error {
	var err error
	count := func(dst, given *uint32, path string) {
		if given == nil {
			return
		}
		if *given == 0 && err == nil {
			err = fieldErr(path, "0 is not allowed; leave it out for the default")
		}
		*dst = *given
	}
	count(&s.Replicas, v.Replicas, "replicas")
	if v.Ring != nil {
		count(&s.VNodes, v.Ring.VNodes, "ring.vnodes")
	}
	if v.Jump != nil {
		s.JumpVariant = v.Jump.Variant
		count(&s.JumpUnit, v.Jump.Unit, "jump.unit")
	}
	if v.Rendezvous != nil {
		s.RendezvousTable = v.Rendezvous.Table
	}
	if v.Maglev != nil {
		count(&s.TableSize, v.Maglev.TableSize, "maglev.table_size")
	}
	if v.Slots != nil {
		count(&s.SlotCount, v.Slots.Count, "slots.count")
	}
	return err
}

// UnmarshalJSON reads a node. An absent weight is 1, a weight of 0 is 0.
// Unknown fields are refused.
func (n *Node) UnmarshalJSON(b []byte) error {
	type plain Node // without this method
	v := plain{Weight: 1}
	if err := strictJSON(b, &v); err != nil {
		return err
	}
	*n = Node(v)
	return nil
}

type declaredJSON struct {
	Cluster string `json:"cluster"`
	specJSON
	Nodes []Node `json:"nodes"`
}

// MarshalJSON writes the declaration with the field names of a cluster file,
// so that it can be read back as one.
func (d Declared) MarshalJSON() ([]byte, error) {
	nodes := d.Nodes
	if nodes == nil {
		nodes = []Node{}
	}
	return json.Marshal(declaredJSON{d.Cluster, d.Spec.view(), nodes})
}

// UnmarshalJSON reads what MarshalJSON writes, as strictly as
// Spec.UnmarshalJSON and Node.UnmarshalJSON do. It does not Validate. Package
// topology/clusterfile reads the same with positions in its errors.
func (d *Declared) UnmarshalJSON(b []byte) error {
	var v declaredJSON
	if err := strictJSON(b, &v); err != nil {
		return err
	}
	spec, err := v.spec()
	if err != nil {
		return err
	}
	*d = Declared{Cluster: v.Cluster, Spec: spec, Nodes: v.Nodes}
	return nil
}

// MarshalJSON writes everything but the contents of the tables. Field names
// are those of a cluster file. There is no way back: programs exchange Encode
// or MarshalSaved.
func (t *Topology) MarshalJSON() ([]byte, error) {
	nodes := t.d.Nodes
	if nodes == nil {
		nodes = []Node{}
	}
	return json.Marshal(struct {
		Cluster   string    `json:"cluster"`
		ClusterID ClusterID `json:"cluster_id"`
		Version   Version   `json:"version"`
		History   History   `json:"history"`
		Digest    Digest    `json:"digest"`
		Parent    Digest    `json:"parent"`
		Mapping   Digest    `json:"mapping"`
		specJSON
		Nodes      []Node          `json:"nodes"`
		Tables     []ObjectRef     `json:"tables,omitempty"`
		Cause      Cause           `json:"cause"`
		Transition *transitionJSON `json:"transition,omitempty"`
		Tenure     *Tenure         `json:"tenure,omitempty"`
	}{t.d.Cluster, t.d.ID, t.d.Version, t.d.History, t.digest, t.d.Parent, t.d.Mapping,
		t.d.Spec.view(), nodes, t.refs, t.d.Cause, t.d.Transition.view(), t.d.Tenure})
}

// strictJSON reads exactly one JSON value without unknown fields.
func strictJSON(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("topology: more than one JSON value")
	}
	return nil
}
