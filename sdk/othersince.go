package sdk

import "github.com/shardd/shardd/topology"

// OtherSince is FirstSince of the node that Other names: what that node stored for the
// key under an earlier version is from an earlier time as its owner, and may have been
// overwritten elsewhere since. Zero where the key has one owner, or the other is down.
func (r Route) OtherSince() topology.Version {
	if r.rec == nil {
		return topology.Version{}
	}
	return r.rec.snap.table.OtherSince(r.hash)
}
