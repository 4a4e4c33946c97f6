package sdk

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardd/shardd/topology"
)

// refs are all topologies of a small world: two clusters, three epochs of which
// each began in two stores, three versions, two contents.
func refs() []topology.Ref {
	var all []topology.Ref
	for cluster := range byte(2) {
		for epoch := range uint64(3) {
			for history := range uint64(2) {
				for seq := range uint64(3) {
					for content := range byte(2) {
						all = append(all, topology.Ref{ClusterID: topology.ClusterID{cluster + 1}, History: topology.History(10*epoch + history + 1),
							Version: topology.Version{Epoch: epoch + 1, Seq: seq + 1},
							Digest:  topology.Digest{cluster + 1, byte(epoch), byte(history), byte(seq), content + 1}})
					}
				}
			}
		}
	}
	return all
}

// TestAdmitEverywhere holds admit to the rule on every pair of the small world.
func TestAdmitEverywhere(t *testing.T) {
	all := refs()
	for _, held := range all {
		for _, offered := range all {
			for _, parent := range []topology.Digest{held.Digest, {9}} {
				v, err := admit(held.ClusterID, held, offered, parent)
				if (v == refuse) != (err != nil) {
					t.Fatalf("held %v, offered %v: verdict %d with error %v", held, offered, v, err)
				}
				h, o := held.Version, offered.Version
				sameLine := held.ClusterID == offered.ClusterID && h.Epoch == o.Epoch && held.History == offered.History
				next := o.Seq == h.Seq+1
				want := refuse
				switch {
				case held == offered:
					want = have
				case held.ClusterID == offered.ClusterID && o.Epoch > h.Epoch,
					sameLine && o.Seq > h.Seq && (!next || parent == held.Digest):
					want = take
				}
				if v != want {
					t.Fatalf("held %+v, offered %+v, parent %s: verdict %d, want %d (%v)", held, offered, parent, v, want, err)
				}
			}
		}
	}
}

// TestAdmitNeverBack walks every path of three offers: whatever is taken, the
// version only grows and the cluster stays.
func TestAdmitNeverBack(t *testing.T) {
	all := refs()
	for _, first := range all {
		for _, second := range all {
			if v, _ := admit(first.ClusterID, first, second, first.Digest); v != take {
				continue
			}
			if second.ClusterID != first.ClusterID || second.Version.Compare(first.Version) <= 0 {
				t.Fatalf("from %+v to %+v", first, second)
			}
			if v, err := admit(first.ClusterID, second, first, second.Digest); v != refuse {
				t.Fatalf("back from %+v to %+v: verdict %d, %v", second, first, v, err)
			}
		}
	}
}

func TestAdmitReasons(t *testing.T) {
	ref := func(cluster byte, epoch uint64, history topology.History, seq uint64, digest byte) topology.Ref {
		return topology.Ref{ClusterID: topology.ClusterID{cluster}, History: history, Version: topology.Version{Epoch: epoch, Seq: seq}, Digest: topology.Digest{digest}}
	}
	held := ref(1, 2, 20, 5, 50)
	f := func(name string, offered topology.Ref, parent byte, want error, words ...string) {
		t.Helper()
		_, err := admit(held.ClusterID, held, offered, topology.Digest{parent})
		if !errors.Is(err, want) {
			t.Fatalf("%s: %v, want %v", name, err, want)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}
	other := ref(2, 9, 90, 9, 99)
	f("another cluster", other, 0, ErrCluster, held.ClusterID.String(), other.ClusterID.String())
	f("earlier epoch", ref(1, 1, 10, 9, 19), 0, ErrOlder)
	f("earlier version", ref(1, 2, 20, 4, 40), 0, ErrOlder)
	f("another history", ref(1, 2, 21, 6, 60), 50, ErrForked)
	f("another history, earlier", ref(1, 2, 21, 4, 40), 0, ErrForked)
	f("same version, other content", ref(1, 2, 20, 5, 51), 0, ErrForked)
	f("next version, other parent", ref(1, 2, 20, 6, 60), 51, ErrForked)
}
