package topology

import "encoding/json"

// foreignJSON is Foreign with the field names of a cluster file, which are the
// foreign system's own.
type foreignJSON struct {
	Mode          Mode    `json:"mode"`
	Distribution  string  `json:"distribution,omitempty"`
	HashType      string  `json:"hash_type,omitempty"`
	Compatibility string  `json:"compatibility,omitempty"`
	Hash          string  `json:"hash,omitempty"`
	Function      string  `json:"function,omitempty"`
	HashTag       string  `json:"hash_tag,omitempty"`
	Avalanche     *bool   `json:"avalanche,omitempty"`
	SortHosts     bool    `json:"sort_hosts,omitempty"`
	Points        uint32  `json:"points,omitempty"`
	MinRingSize   uint32  `json:"min_ring_size,omitempty"`
	MaxRingSize   uint32  `json:"max_ring_size,omitempty"`
	TableSize     uint32  `json:"table_size,omitempty"`
	Seed          string  `json:"seed,omitempty"`
	Partitions    uint32  `json:"partitions,omitempty"`
	Load          float64 `json:"load,omitempty"`
	DefaultPort   uint32  `json:"default_port,omitempty"`
	Input         string  `json:"input,omitempty"`
	Depth         uint32  `json:"depth,omitempty"`
	Threshold     uint32  `json:"threshold,omitempty"`
}

// MarshalJSON writes the normal form with the field names of a cluster file.
func (f Foreign) MarshalJSON() ([]byte, error) {
	f = f.normal()
	v := foreignJSON{Mode: f.Mode, HashTag: f.HashTag, SortHosts: f.SortHosts, Points: f.Points, MinRingSize: f.MinRingSize, MaxRingSize: f.MaxRingSize,
		TableSize: f.TableSize, Seed: f.Seed, Partitions: f.Partitions, Load: f.Load, DefaultPort: f.DefaultPort, Input: f.Input, Depth: f.Depth, Threshold: f.Threshold}
	r := modeRules[f.Mode]
	switch {
	case r.haproxy:
		v.HashType, v.Function, v.Avalanche = f.Distribution, f.Hash, &f.Avalanche
	case r.npm:
		v.Compatibility, v.Hash = f.Distribution, f.Hash
	default:
		v.Distribution, v.Hash = f.Distribution, f.Hash
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes; absent fields get their defaults.
// Fields that the mode does not have are refused. It does not validate values.
func (f *Foreign) UnmarshalJSON(b []byte) error {
	var v foreignJSON
	if err := strictJSON(b, &v); err != nil {
		return err
	}
	g, err := v.foreign()
	if err == nil {
		*f = g
	}
	return err
}

func (v foreignJSON) foreign() (Foreign, error) {
	f := Foreign{Mode: v.Mode, Distribution: v.Distribution, Hash: v.Hash, HashTag: v.HashTag, SortHosts: v.SortHosts, Points: v.Points,
		MinRingSize: v.MinRingSize, MaxRingSize: v.MaxRingSize, TableSize: v.TableSize, Seed: v.Seed, Partitions: v.Partitions,
		Load: v.Load, DefaultPort: v.DefaultPort, Input: v.Input, Depth: v.Depth, Threshold: v.Threshold}
	given := []string{}
	add := func(name string, there bool) {
		if there {
			given = append(given, name)
		}
	}
	add("distribution", v.Distribution != "")
	add("hash_type", v.HashType != "")
	add("compatibility", v.Compatibility != "")
	add("hash", v.Hash != "")
	add("function", v.Function != "")
	add("hash_tag", v.HashTag != "")
	add("avalanche", v.Avalanche != nil)
	add("sort_hosts", v.SortHosts)
	add("points", v.Points != 0)
	add("min_ring_size", v.MinRingSize != 0)
	add("max_ring_size", v.MaxRingSize != 0)
	add("table_size", v.TableSize != 0)
	add("seed", v.Seed != "")
	add("partitions", v.Partitions != 0)
	add("load", v.Load != 0)
	add("default_port", v.DefaultPort != 0)
	add("input", v.Input != "")
	add("depth", v.Depth != 0)
	add("threshold", v.Threshold != 0)
	for _, name := range given {
		if !v.Mode.Has(name) {
			return Foreign{}, noSuchParameter(v.Mode, name)
		}
	}
	if v.HashType != "" {
		f.Distribution = v.HashType
	}
	if v.Compatibility != "" {
		f.Distribution = v.Compatibility
	}
	if v.Function != "" {
		f.Hash = v.Function
	}
	f.SetAvalanche(v.Avalanche)
	return f.normal(), nil
}

// SetAvalanche sets the word avalanche; nil = not given. An explicit false
// without a function stands for "consistent sdbm", for HAProxy knows no other
// way to have consistent hashing without it.
func (f *Foreign) SetAvalanche(given *bool) {
	if given == nil {
		return
	}
	f.Avalanche = *given
	if !*given && f.Hash == "" {
		f.Hash = "sdbm"
	}
}

// noSuchParameter refuses a field that the mode does not have.
func noSuchParameter(m Mode, name string) error {
	if _, ok := modeRules[m]; !ok {
		return Foreign{Mode: m}.validate()
	}
	return fieldErr("compat."+name, "mode %s has no such parameter; it has %s", m, parameterList(m))
}

// foreign reads the spec of a foreign mapping.
func (v specJSON) foreign() (Spec, error) {
	if v.Algorithm != "" || v.KeyHash != "" || v.HashTag != nil || v.Ring != nil || v.Jump != nil || v.Rendezvous != nil || v.Maglev != nil || v.Slots != nil {
		return Spec{}, fieldErr("compat", "stands instead of an algorithm, its parameters, key_hash and hash_tag; remove one or the other")
	}
	s := Spec{Algorithm: Compat, Compat: *v.Compat, BoundedLoad: v.BoundedLoad, ZoneAware: v.ZoneAware}
	if v.Replicas != nil {
		if s.Replicas = *v.Replicas; s.Replicas == 0 {
			return Spec{}, fieldErr("replicas", "0 is not allowed; leave it out for the default")
		}
	}
	return s.Normal(), nil
}
