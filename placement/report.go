package placement

// Method names how a movement was computed.
type Method string

// The methods of Movement. All but MethodSample are exact, MethodFormula and
// MethodIndependent in the law of the key hash.
const (
	MethodNone        Method = "none"        // nothing to compute: no version before, or a side without owners
	MethodArcs        Method = "arcs"        // ring to ring: both rings' points merged, in units of 2^-64
	MethodTable       Method = "table"       // two tables of one size, entry by entry
	MethodBreakpoints Method = "breakpoints" // ring points and table borders merged, in units of 2^-64
	MethodResidues    Method = "residues"    // hash modulo two sizes, by joint residues
	MethodFormula     Method = "formula"     // jump to jump, rendezvous to rendezvous, in closed form
	MethodIndependent Method = "independent" // two mappings that know nothing of each other: 1 - sum p q
	MethodEnumeration Method = "enumeration" // every value of a 16-bit key hash
	MethodSample      Method = "sample"      // pseudo-random hashes of a fixed seed, with a Wilson interval
	MethodIdentical   Method = "identical"   // equal mapping digests where the method would be sample
)

// Report says what moves between two versions. Shares are of the key space,
// 0..1, and with replicas of all copies: a copy moves if a node holds it after
// that did not before. Its JSON form is that of "migrate plan".
type Report struct {
	Summary `json:"movement"`
	// Nodes lists every node of either version that owns something in one of
	// them, by ID.
	Nodes []NodeMovement `json:"nodes"`
	// Flows lists who hands how much to whom, largest first; at most
	// Options.MaxFlows, FlowsOmitted counts the rest.
	Flows        []Flow `json:"flows"`
	FlowsOmitted int    `json:"flows_omitted,omitempty"`
	// Cause is the later version's cause: CauseCreated and so on.
	Cause string `json:"cause"`
	// Optimal says that exactly the realised minimum moves, in integers: no
	// other way to these shares moves less. Always false for MethodFormula,
	// MethodIndependent and MethodSample, which do not count in integers.
	Optimal bool `json:"optimal"`
	// Reordered is the share of keys whose nodes stay the same in another
	// order; nothing is copied for them. 0 with one replica.
	Reordered float64 `json:"reordered,omitempty"`
	// ZonesRelaxed says that replicas share zones in the later version.
	ZonesRelaxed bool `json:"zones_relaxed,omitempty"`
	// Conditional says for which keys the figures hold, where that is not
	// all keys (hash tags); "" = all.
	Conditional string `json:"conditional,omitempty"`
	// Sample stands beside MethodIndependent: the same movement, counted.
	Sample *Sample `json:"sample,omitempty"`
}

// Summary is the movement in figures.
type Summary struct {
	// Ratio is the share that moves. It may be below Minimum (the luck of a
	// ring's arcs) and is never clamped.
	Ratio float64 `json:"ratio"`
	// Minimum is the least that any mapping must move to get from the shares
	// that the old weights ask for to those of the new ones.
	Minimum float64 `json:"minimum"`
	// MinimumRealised is the same for the shares that the two mappings have.
	MinimumRealised float64 `json:"minimum_realised"`
	// Excess is Ratio - Minimum.
	Excess float64 `json:"excess"`
	// BetweenUnchanged is what moves between nodes neither of which changed:
	// needless, 0 unless the algorithm cannot do better.
	BetweenUnchanged float64 `json:"between_unchanged"`
	// Remapped is the same after a change of algorithm, parameters, key hash
	// or replicas, where it is no fault; BetweenUnchanged is then 0.
	Remapped float64 `json:"remapped"`
	// Method says how Ratio was computed.
	Method Method `json:"method"`
	// Interval is a 95 % interval around Ratio, nil (null) when it is exact.
	Interval *[2]float64 `json:"interval"`
}

// NodeMovement is one node's part: After = Before + In - Out.
type NodeMovement struct {
	ID     string  `json:"id"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	In     float64 `json:"in"`
	Out    float64 `json:"out"`
}

// Flow is what one node hands to another. From is "" for a copy that no node
// gives up (more replicas than before), To is "" for one that nobody takes.
type Flow struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Share float64 `json:"share"`
}

// Sample is a movement counted on pseudo-random hashes of a fixed seed.
type Sample struct {
	Keys     int        `json:"keys"`
	Ratio    float64    `json:"ratio"`
	Interval [2]float64 `json:"interval"` // Wilson, 95 %
}

// MovementOptions bound a report. The zero value takes the defaults.
type MovementOptions struct {
	// MaxFlows is the largest number of flows kept; 0 = 1000, -1 = all.
	MaxFlows int
	// SampleKeys is the number of hashes drawn where a sample is needed;
	// 0 = 20,000 to 65,536, fewer the more a lookup costs: about .1 s. A
	// plan that nobody waits for can afford 1,000,000.
	SampleKeys int
}
