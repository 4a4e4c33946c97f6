package topology

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits on names and nodes.
const (
	// MaxNodes is the largest number of nodes in one topology: tables hold
	// owners in 16 bits, with two values kept back.
	MaxNodes = 65_534
	// MaxWeight is the largest weight of a node.
	MaxWeight = 1_000_000
	// MaxNameLen is the largest length in bytes of a node id or a zone.
	MaxNameLen = 128
	// MaxAddrLen is the largest length in bytes of an address or a label.
	MaxAddrLen = 512
)

// State says what part a node plays. A state is declared or decided, never a
// passing health check (health is an overlay that moves no key).
type State uint8

// The states of a node. Active and down nodes own keys; draining nodes give
// theirs up; joining and left nodes own none.
const (
	StateActive   State = iota // owns keys and takes requests; the default
	StateJoining               // known, owns nothing yet
	StateDraining              // gives up its keys, finishes what is in flight
	StateDown                  // owns its keys, but requests go to the next in order
	StateLeft                  // gone, kept only so that its return is recognised
	numStates
)

var stateNames = [numStates]string{"active", "joining", "draining", "down", "left"}

// String returns the lower-case name of the state.
func (s State) String() string {
	if s >= numStates {
		return fmt.Sprintf("state(%d)", uint8(s))
	}
	return stateNames[s]
}

// ParseState reads a state's name; "" is active.
func ParseState(name string) (State, error) {
	if name == "" {
		return StateActive, nil
	}
	for s, n := range stateNames {
		if n == name {
			return State(s), nil
		}
	}
	return 0, fmt.Errorf("topology: state %q: want one of %s", name, strings.Join(stateNames[:], ", "))
}

// MarshalText writes the name of the state.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name of a state; "" is active.
func (s *State) UnmarshalText(b []byte) error {
	v, err := ParseState(string(b))
	if err == nil {
		*s = v
	}
	return err
}

// Node is one member of a cluster. Nodes are values; copy them freely.
type Node struct {
	// ID is the node's identity and the only thing of it that native
	// placement hashes: 1 to 128 bytes of printable ASCII without space,
	// '/' or ','; not "." or "..".
	ID string `json:"id"`
	// Addr is where the node is now, usually "host:port". Changing it moves
	// no key under the native algorithms. May be empty.
	Addr string `json:"addr,omitempty"`
	// Zone is the failure domain; "" is a zone like any other name.
	Zone string `json:"zone,omitempty"`
	// Label is what a foreign system hashes where that is neither ID nor
	// Addr; "" means the foreign system's own default.
	Label string `json:"label,omitempty"`
	// Weight is the node's share relative to the others: 0 to MaxWeight;
	// 0 = owns nothing (a drain). Cluster files read an absent weight as 1.
	Weight uint32 `json:"weight"`
	// State defaults to active.
	State State `json:"state"`
	// Position is the node's place in a foreign system's list of nodes, from 1,
	// where that order matters; 0 = behind those that have one, by ID. A cluster
	// file's order gives it. Native algorithms have no use for it, and a
	// topology under one of them has 0.
	Position uint32 `json:"position,omitempty"`
	// Slots are the slots that the node of a Redis Cluster holds, as ranges
	// such as "0-5460 10923"; "" = as redis-cli would deal them. See package
	// placement for when they count. Only mode redis-slots has them.
	Slots string `json:"slots,omitempty"`
}

// OwnerWeight is the weight by which the node owns keys: Weight while it is
// active or down, else 0.
func (n Node) OwnerWeight() uint32 {
	if n.State == StateActive || n.State == StateDown {
		return n.Weight
	}
	return 0
}

func (n Node) validate(path string) error {
	if err := ValidateNodeID(n.ID); err != nil {
		return &FieldError{Path: path + ".id", Err: err}
	}
	if n.Weight > MaxWeight {
		return fieldErr(path+".weight", "node %q: weight %d is more than %d; scale all weights down", n.ID, n.Weight, MaxWeight)
	}
	if n.State >= numStates {
		return fieldUnknown(path+".state", "node %q: unknown state %d", n.ID, n.State)
	}
	if err := printable("zone", n.Zone, MaxNameLen); err != nil {
		return &FieldError{Path: path + ".zone", Err: fmt.Errorf("node %q: %w", n.ID, err)}
	}
	if err := printable("addr", n.Addr, MaxAddrLen); err != nil {
		return &FieldError{Path: path + ".addr", Err: fmt.Errorf("node %q: %w", n.ID, err)}
	}
	if err := printable("label", n.Label, MaxAddrLen); err != nil {
		return &FieldError{Path: path + ".label", Err: fmt.Errorf("node %q: %w", n.ID, err)}
	}
	return nil
}

// ValidateNodeID says why id is no legal node id, or returns nil. See Node.ID.
func ValidateNodeID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("node id is empty; give every node a stable name")
	case len(id) > MaxNameLen:
		return fmt.Errorf("node id of %d bytes is longer than %d", len(id), MaxNameLen)
	case id == "." || id == "..":
		return fmt.Errorf("node id %q is not allowed", id)
	}
	for i := 0; i < len(id); i++ {
		if c := id[i]; c <= ' ' || c > '~' || c == '/' || c == ',' {
			return fmt.Errorf("node id %q has %q at byte %d; use printable ASCII without space, '/' and ','", id, c, i)
		}
	}
	return nil
}

// ValidateClusterName says why name is no legal cluster name, or returns nil:
// 1 to 63 bytes of a-z, A-Z, 0-9, '.', '_', '-', beginning with a letter or
// digit. No legal name is a path component that leads elsewhere.
func ValidateClusterName(name string) error {
	if name == "" {
		return fmt.Errorf("cluster name is empty")
	}
	if len(name) > 63 {
		return fmt.Errorf("cluster name of %d bytes is longer than 63", len(name))
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("cluster name %q has %q at byte %d; use letters, digits, '.', '_', '-', beginning with a letter or digit", name, c, i)
		}
	}
	return nil
}

func printable(what, s string, most int) error {
	if len(s) > most {
		return fmt.Errorf("%s of %d bytes is longer than %d", what, len(s), most)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s %q is not UTF-8", what, s)
	}
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return fmt.Errorf("%s %q has a control character at byte %d", what, s, i)
		}
	}
	return nil
}
