package api

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Topology is the answer of GET topology: everything readable about one
// version, and its canonical encoding in "encoded" (base64). Tables are named
// under "tables" and fetched by digest from GET objects.
type Topology struct {
	*topology.Topology
}

// MarshalJSON writes the readable fields and the encoding.
func (t Topology) MarshalJSON() ([]byte, error) {
	view, err := json.Marshal(t.Topology)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(t.Encode())
	if err != nil {
		return nil, err
	}
	view = append(view[:len(view)-1], `,"encoded":`...) // in place of the closing brace
	return append(append(view, encoded...), '}'), nil
}

// UnmarshalJSON reads the encoding and nothing else. The tables are missing
// afterwards.
func (t *Topology) UnmarshalJSON(b []byte) error {
	var v struct {
		Encoded []byte `json:"encoded"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	topo, err := topology.Decode(v.Encoded)
	if err != nil {
		return err
	}
	t.Topology = topo
	return nil
}

// MessageType says what a line of a watch is. A client skips types that it does
// not know.
type MessageType string

// The types of messages.
const (
	// MessageFull carries a whole version.
	MessageFull MessageType = "full"
	// MessageDelta carries what leads from the version that the client has to
	// the newest. It comes only if the client asks for it.
	MessageDelta MessageType = "delta"
	// MessageHeartbeat says that the connection lives and which version is
	// the newest. It comes at once if there is nothing newer to send, and
	// then at the announced interval.
	MessageHeartbeat MessageType = "heartbeat"
	// MessageHealth says which nodes are bad by their own checks: requests
	// should go round them. It comes when the leader says so first, and with
	// every change; what it says stands until the next one, or one of type
	// MessageHealthUnknown, as long as the stream lives. It is no part of a version.
	MessageHealth MessageType = "health"
	// MessageHealthUnknown says that nobody says anything of the nodes' health any
	// more: what was said last ends with its time, and heartbeats renew it no
	// longer. A client that does not know it goes on renewing.
	MessageHealthUnknown MessageType = "health_unknown"
	// MessageEnd is the last one: Error says why the server ends the watch.
	MessageEnd MessageType = "end"
)

// Deltas says which delta messages a client of a watch takes: the query
// parameter "deltas".
type Deltas string

// What a client takes. Other values, of a later client, count as DeltasNone.
const (
	DeltasNone Deltas = ""     // whole versions only
	DeltasNext Deltas = "next" // from what this watch has brought
	DeltasAll  Deltas = "all"  // from what after names, too
)

// Message is one line of a watch.
type Message struct {
	Type      MessageType        `json:"type"`
	ClusterID topology.ClusterID `json:"cluster_id"`
	Version   topology.Version   `json:"version"` // newest; zero before the first
	Digest    topology.Digest    `json:"digest"`  // its content digest
	// Base is the content digest of the version that a delta applies to.
	Base topology.Digest `json:"base,omitzero"`
	// Encoded is the canonical encoding of the version, in a full message, or
	// of the delta.
	Encoded []byte `json:"encoded,omitempty"`
	// IntervalMS is the longest time in milliseconds until the next message,
	// in a heartbeat.
	IntervalMS int64  `json:"interval_ms,omitempty"`
	Error      *Error `json:"error,omitempty"`
	// Bad lists the ids of bad nodes, ascending, in a health message.
	Bad []string `json:"bad,omitempty"`
}

// Decode returns the topology of a full message, without its tables. It is
// checked against the digest that the message names.
func (m Message) Decode() (*topology.Topology, error) {
	if m.Type != MessageFull {
		return nil, fmt.Errorf("api: message %q carries no topology", m.Type)
	}
	t, err := topology.Decode(m.Encoded)
	if err != nil {
		return nil, fmt.Errorf("api: version %s: %w", m.Version, err)
	}
	if t.Digest() != m.Digest || t.Version() != m.Version || t.ClusterID() != m.ClusterID {
		return nil, fmt.Errorf("api: %w: message says version %s with digest %s, but carries %s with %s", topology.ErrCorrupt, m.Version, m.Digest, t.Version(), t.Digest())
	}
	return t, nil
}

// DecodeDelta returns the delta of a delta message, checked against the digests
// that the message names.
func (m Message) DecodeDelta() (*topology.Delta, error) {
	if m.Type != MessageDelta {
		return nil, fmt.Errorf("api: message %q carries no delta", m.Type)
	}
	d, err := topology.DecodeDelta(m.Encoded)
	if err != nil {
		return nil, fmt.Errorf("api: delta to version %s: %w", m.Version, err)
	}
	if d.Base() != m.Base || d.Target() != m.Digest {
		return nil, fmt.Errorf("api: %w: message says delta from %s to %s, but carries one from %s to %s", topology.ErrCorrupt, m.Base, m.Digest, d.Base(), d.Target())
	}
	return d, nil
}

// Declared is the answer of GET spec.
type Declared struct {
	topology.Declared
	// Generation counts the accepted edits.
	Generation uint64
	// Applied is the generation that the newest version answers.
	Applied uint64
}

// MarshalJSON writes the fields of a cluster file, generation and applied.
func (d Declared) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(d.Declared)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(b[:len(b)-1], `,"generation":%d,"applied":%d}`, d.Generation, d.Applied), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Declared) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	err := json.Unmarshal(all["generation"], &d.Generation)
	err = errors.Join(err, json.Unmarshal(all["applied"], &d.Applied))
	delete(all, "generation")
	delete(all, "applied")
	rest, err2 := json.Marshal(all)
	return errors.Join(err, err2, json.Unmarshal(rest, &d.Declared))
}

// NodeEdit is the body of POST nodes/{id}/{verb}. Fields that a verb does not
// name must be absent.
type NodeEdit struct {
	// Addr, Zone and Label: verb add.
	Addr  string `json:"addr,omitempty"`
	Zone  string `json:"zone,omitempty"`
	Label string `json:"label,omitempty"`
	// Weight: verb add (absent = that of a cluster file: 1, under go-zero 100), verb weight (must be there).
	Weight *uint32 `json:"weight,omitempty"`
	// By: verb replace, the id of the new node; Addr, Zone, Label and Weight
	// are its own there, absent zone and weight those of the old one.
	By string `json:"by,omitempty"`
	// Ramp: verbs add, weight, drain and undrain, a duration such as "5m" over
	// which the keys change owners in steps; absent = at once. "hand" leaves the
	// steps after the first to POST transition/step; "now" makes what is left of an
	// earlier ramp at once.
	Ramp string `json:"ramp,omitempty"`
}

// Verb is what is done to a node.
type Verb string

// The verbs.
const (
	VerbAdd    Verb = "add"    // a node that is not there yet
	VerbRemove Verb = "remove" // at once; its keys move to the others
	VerbWeight Verb = "weight" // set the weight; 0 = owns nothing

	VerbDrain   Verb = "drain"   // it gives up its keys and stays
	VerbUndrain Verb = "undrain" // it has keys again
	VerbReplace Verb = "replace" // another node takes its place and its keys
	VerbForget  Verb = "forget"  // remove one that owns nothing any more
)

// EditResult is the answer to an accepted edit.
type EditResult struct {
	Cluster   string             `json:"cluster"`
	ClusterID topology.ClusterID `json:"cluster_id"`
	Created   bool               `json:"created,omitempty"` // the cluster is new
	// Generation is that of the declared state after the edit.
	Generation uint64 `json:"generation"`
	// Published says that Version answers the edit. It is false if that took
	// longer than the request was willing to wait (status 202): the edit
	// stands, and the version follows as soon as a leader is there.
	Published bool `json:"published"`
	// From is the version before the edit, zero if there was none; Version
	// the newest one after it. They are equal if the edit changes nothing.
	From    topology.Version `json:"from"`
	Version topology.Version `json:"version"`
	Digest  topology.Digest  `json:"digest"`
	// Movement is the report of Version; nil if nothing was published.
	Movement *placement.Report `json:"movement,omitempty"`
	// Peak is the largest ratio of a node's share to the share that its
	// weight asks for; 0 = nothing published, or no node owns anything.
	Peak float64 `json:"peak_to_mean,omitempty"`
	// Ramp is how the change of owners stands if it is made in steps; nil = it is
	// not. While it goes back, as Ramp.Back says, Published is false until the end.
	Ramp     *Ramp     `json:"ramp,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}

// ETag returns the entity tag of the cluster after the edit.
func (r EditResult) ETag() ETag { return ETag{r.Version, r.Generation, r.ClusterID} }

// Warning is something that was done as asked, but may not be meant.
type Warning struct {
	Code    string `json:"code"` // such as "imbalance", "single_point", "not_published"
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Movement is the answer of GET movement/{version}.
type Movement struct {
	From topology.Version `json:"from"` // zero for the first version
	To   topology.Version `json:"to"`
	placement.Report
}

// History is the answer of GET history, the newest version first.
type History struct {
	Cluster   string             `json:"cluster"`
	ClusterID topology.ClusterID `json:"cluster_id"`
	Versions  []HistoryEntry     `json:"versions"`
	// Omitted is how many kept versions are older than the last one listed.
	Omitted int `json:"omitted,omitempty"`
}

// HistoryEntry is one kept version.
type HistoryEntry struct {
	Version topology.Version `json:"version"`
	Digest  topology.Digest  `json:"digest"`
	Nodes   int              `json:"nodes"` // owners or not
	Cause   topology.Cause   `json:"cause"`
	Moved   bool             `json:"moved"` // ownership changed
	Ratio   float64          `json:"ratio"` // share of the key space that moved; see GET movement
}

// Route is the answer of GET route.
type Route struct {
	Cluster string           `json:"cluster"`
	Version topology.Version `json:"version"`
	Key     string           `json:"key,omitempty"` // empty if the key is not UTF-8
	KeyHex  string           `json:"key_hex"`
	Hash    string           `json:"hash"` // 16 hexadecimal digits
	// Slot is the key's slot: of the slots algorithm, or of Redis Cluster
	// under the key hash crc16; nil otherwise.
	Slot *int `json:"slot,omitempty"`
	// Nodes hold the key, the owner first.
	Nodes []topology.Node `json:"nodes"`
}

// Clusters is the answer of GET clusters, ascending by name.
type Clusters struct {
	Clusters []ClusterEntry `json:"clusters"`
}

// ClusterEntry is one cluster. Fields but the name are zero while the server
// has not read it.
type ClusterEntry struct {
	Name      string             `json:"name"`
	ClusterID topology.ClusterID `json:"cluster_id"`
	Version   topology.Version   `json:"version"`
	Nodes     int                `json:"nodes"`
}

// Overlay is the answer of GET health: which nodes requests should go round. It is
// no part of a version; see MessageHealth.
type Overlay struct {
	Cluster   string             `json:"cluster"`
	ClusterID topology.ClusterID `json:"cluster_id"`
	Known     bool               `json:"known"` // a leader says so; else nobody says anything
	Bad       []string           `json:"bad"`   // ids of the nodes whose own check fails, ascending
}

// Ready is the answer of GET readyz, with status 200.
type Ready struct {
	Status string `json:"status"` // "ready"
	// Notes say what an operator should know all the same.
	Notes []string `json:"notes,omitempty"`
}
