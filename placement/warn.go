package placement

import (
	"fmt"
	"math"
	"slices"

	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/topology"
)

// Warning says where a foreign mapping hurts, with the number.
type Warning struct {
	// Code is one of the Warn constants.
	Code string
	// Message says what is so, Hint what can be done.
	Message, Hint string
}

// Codes of warnings.
const (
	WarnUneven   = "uneven-keys"    // ordinary keys crowd on a node: the hash is not fit for the ring
	WarnPoints   = "few-points"     // so few points that shares are luck
	WarnPort     = "port-left-out"  // port 11211 is no part of a label
	WarnRounding = "rounded-points" // single precision takes points away
	WarnModulo   = "modulo"         // most keys move when a node is added
	WarnList     = "list-order"     // only the last of the list can leave at the minimum
	WarnStandIn  = "stand-in"       // shares and movement are right, single keys are not
	WarnUnproven = "not-recorded"   // read in the source, never compared with the software
)

// warnKeys is how many keys are counted: 1 % of a node's share with ten nodes.
const warnKeys = 10_000

// most are the bounds above which a warning is given.
const (
	mostCrowded  = 1.5 // times the share that the weight asks for
	leastPoints  = 40  // a node; 160 is usual
	mostListMove = 1.2 // times the minimum
)

// Warnings says what of a foreign mapping hurts; nil for a native one. It counts
// 10,000 keys, and where it says what a change would move, it builds that change.
func Warnings(t *Table) []Warning {
	if !t.compat() || t.owners == 0 {
		return nil
	}
	w := warner{t: t, f: t.topo.Spec().Compat}
	w.uneven()
	w.points()
	w.port()
	w.rounding()
	w.modulo()
	w.list()
	w.source()
	return w.found
}

type warner struct {
	t     *Table
	f     topology.Foreign
	found []Warning
}

func (w *warner) add(code, hint, format string, args ...any) {
	w.found = append(w.found, Warning{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// away is the hint of all that only another mapping mends.
const away = "plan the way out: migrate plan --from FILE --to a file with a native algorithm"

// uneven counts keys as people name them: numbers behind a word.
func (w *warner) uneven() {
	if w.t.owners < 2 {
		return
	}
	counts := make([]int, w.t.Len())
	l := newLister(w.t, identity(w.t.Len()))
	l.copies = 1
	for i := range warnKeys {
		counts[l.byKey(w.key(i))[0]]++
	}
	spec, total := w.t.topo.Spec(), uint64(0)
	for _, n := range w.t.topo.Nodes() {
		total += uint64(spec.OwnerWeight(n))
	}
	worst, most := -1, 0.0
	for i, n := range w.t.topo.Nodes() {
		if weight := spec.OwnerWeight(n); weight > 0 {
			if ratio := float64(counts[i]) / warnKeys * float64(total) / float64(weight); ratio > most {
				worst, most = i, ratio
			}
		}
	}
	if most < mostCrowded {
		return
	}
	w.add(WarnUneven, away, "of %d keys such as %q node %s gets %.1f %%, %.1f times what its weight asks for: %s",
		warnKeys, w.key(17), w.t.topo.Node(worst).ID, 100*float64(counts[worst])/warnKeys, most, w.reason())
}

// key is an ordinary key of number i.
func (w *warner) key(i int) string {
	if w.f.Mode == topology.ModeNginxIPHash {
		return fmt.Sprintf("10.%d.%d.7", i/256, i%256)
	}
	return fmt.Sprintf("key:%d", i)
}

// reason says why keys crowd.
func (w *warner) reason() string {
	switch {
	case w.t.hash.Few() && w.t.kind == kindRing:
		return fmt.Sprintf("hash %s has %d bits, so that all keys lie in a small part of the ring's 32", w.f.Hash, w.t.hash.Bits())
	case w.t.kind == kindRing && w.t.Peak() < mostCrowded:
		return fmt.Sprintf("hash %s puts similar keys side by side on the ring", w.t.hash)
	case w.t.kind == kindRing && w.f.Mode == topology.ModeLibmemcached:
		return fmt.Sprintf("hash %s puts a server's points, and similar keys, side by side on the ring", w.t.hash)
	}
	return fmt.Sprintf("hash %s spreads similar keys that unevenly here", w.t.hash)
}

// points warns of rings on which shares are luck: n points a node leave a
// coefficient of variation of 1/sqrt(n).
func (w *warner) points() {
	if w.t.kind != kindRing {
		return
	}
	counts := make([]int, w.t.Len())
	for i := range w.t.ring.NumPoints() {
		_, owner := w.t.ring.Point(i)
		counts[owner]++
	}
	least, spec := math.MaxInt, w.t.topo.Spec()
	for i, n := range w.t.topo.Nodes() {
		if spec.OwnerWeight(n) > 0 {
			least = min(least, counts[i])
		}
	}
	if least < leastPoints && w.t.owners > 1 {
		w.add(WarnPoints, "multiply all weights by one number where that gives more points, or "+away,
			"some node has only %d points on the ring (shares vary by about %.0f %%): the fullest gets %.2f times what its weight asks for", least, 100/math.Sqrt(float64(max(1, least))), w.t.Peak())
	}
}

// port warns of labels without a port.
func (w *warner) port() {
	left := compat.PortLeftOut(w.f, w.t.topo.Nodes())
	if len(left) == 0 {
		return
	}
	share, shares := 0.0, w.t.Shares()
	for _, i := range left {
		share += shares[i]
	}
	w.add(WarnPort, "give such nodes a label, their name on the ring, before another port is needed",
		"port 11211 is left out of the labels of %d nodes: on another port they are other nodes, and %.1f %% of the keys move", len(left), 100*share)
}

// rounding warns of points lost to single precision.
func (w *warner) rounding() {
	short, lost, all := compat.RoundedPoints(w.f, w.t.topo.Nodes())
	if short > 0 {
		w.add(WarnRounding, "nothing need be done while all clients round alike; the points come and go with the number of nodes",
			"rounding in single precision leaves %d of %d nodes short of points: %d of %d are not there", short, w.t.owners, lost, all)
	}
}

// modulo says what a further node moves where nodes are counted off.
func (w *warner) modulo() {
	if !compat.CountsOff(w.f) {
		return
	}
	next, err := w.with(func(nodes []topology.Node) []topology.Node {
		return append(nodes, topology.Node{ID: w.fresh(), Addr: "192.0.2.1:1", Weight: w.meanWeight()})
	})
	if err != nil {
		return
	}
	if r, err := MovementWith(w.t, next, MovementOptions{MaxFlows: 1}); err == nil {
		w.add(WarnModulo, away, "nodes are counted off: adding one to %d moves %.1f %% of the keys, where %.1f %% would do", w.t.owners, 100*r.Ratio, 100*r.Minimum)
	}
}

// list says what the loss of the first of a list costs.
func (w *warner) list() {
	if w.t.kind != kindList || w.t.owners < 2 {
		return
	}
	next, err := w.with(func(nodes []topology.Node) []topology.Node {
		return slices.DeleteFunc(nodes, func(n topology.Node) bool { return n.ID == topology.InOrder(w.t.topo.Nodes())[0].ID })
	})
	if err != nil {
		return
	}
	if r, err := MovementWith(w.t, next, MovementOptions{MaxFlows: 1}); err == nil && r.Ratio > mostListMove*r.Minimum {
		w.add(WarnList, "replace a node in its place instead of removing it, or "+away,
			"only the last node of the list can leave at the minimum: removing the first moves %.1f %% of the keys, where %.1f %% would do", 100*r.Ratio, 100*r.Minimum)
	}
}

// source warns of what is less than key for key.
func (w *warner) source() {
	switch {
	case w.f.Mode == topology.ModeCilium:
		w.add(WarnStandIn, "take shares and movement from it, not where one key is", "Cilium hashes the addresses of packets; here xxHash of the key stands for that")
	case w.f.Mode == topology.ModeTwemproxy && w.f.Hash == "hsieh", w.f.Mode == topology.ModeCaddy && w.f.Distribution == "2.10", w.f.Distribution == "ketama_spy",
		w.f.Mode == topology.ModeEnvoyRing && w.f.Hash == "murmur2":
		w.add(WarnUnproven, "compare some keys with the running system first", "this variant was read in the source and never compared with the software")
	}
}

// with builds the mapping with other nodes.
func (w *warner) with(edit func([]topology.Node) []topology.Node) (*Table, error) {
	d := w.t.topo.Draft()
	d.Nodes, d.Version.Seq, d.Cause = edit(d.Nodes), d.Version.Seq+1, topology.Cause{}
	return Update(w.t, d)
}

// fresh returns an id that no node has.
func (w *warner) fresh() string {
	id := "one-more"
	for w.t.topo.Index(id) >= 0 {
		id += "-"
	}
	return id
}

// meanWeight is the mean weight of those that own keys.
func (w *warner) meanWeight() uint32 {
	sum, n := uint64(0), uint64(0)
	for _, x := range w.t.topo.Nodes() {
		if x.OwnerWeight() > 0 {
			sum, n = sum+uint64(x.OwnerWeight()), n+1
		}
	}
	return uint32(max(1, sum/max(1, n)))
}

func identity(n int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = i
	}
	return at
}
