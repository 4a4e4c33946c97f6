package foreign_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// parse reads a file that is right.
func parse(t *testing.T, f foreign.Format, data string, o foreign.Options) foreign.Result {
	t.Helper()
	r, err := foreign.Parse(f, "file", []byte(data), o)
	if err != nil {
		t.Fatalf("%s:\n%s\n%v", f, data, err)
	}
	return r
}

// compat is the normal form of a mapping.
func compat(f topology.Foreign) topology.Foreign {
	return topology.Spec{Algorithm: topology.Compat, Compat: f}.Normal().Compat
}

// reads wants data to give a mapping and nodes, which a cluster file can say.
func reads(t *testing.T, f foreign.Format, data string, o foreign.Options, want topology.Foreign, nodes ...topology.Node) {
	t.Helper()
	r := parse(t, f, data, o)
	if diff := cmp.Diff(compat(want), r.Declared.Spec.Compat); diff != "" {
		t.Errorf("%s:\n%s\nmapping (-want +got):\n%s", f, data, diff)
	}
	for i := range nodes {
		if nodes[i].Weight == 0 && nodes[i].Slots == "" && nodes[i].State == topology.StateActive && !strings.HasPrefix(nodes[i].ID, "zero") {
			nodes[i].Weight = 1
		}
		if nodes[i].Position == 0 {
			nodes[i].Position = uint32(i + 1)
		}
	}
	if diff := cmp.Diff(nodes, r.Declared.Nodes); diff != "" {
		t.Errorf("%s:\n%s\nnodes (-want +got):\n%s", f, data, diff)
	}
	again, err := clusterfile.Parse("again.yaml", clusterfile.Format(r.Declared))
	if diff := cmp.Diff(r.Declared, again); err != nil || diff != "" {
		t.Errorf("%s: as a cluster file: %v (-want +got):\n%s", f, err, diff)
	}
}

// refused wants an error that has this text.
func refused(t *testing.T, f foreign.Format, data, want string) {
	t.Helper()
	r, err := foreign.Parse(f, "file", []byte(data), foreign.Options{})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s:\n%s\ngot  %v\nwant %s", f, data, err, want)
	}
	if diff := cmp.Diff(foreign.Result{}, r); diff != "" {
		t.Errorf("%s: a refused file gives something: %s", f, diff)
	}
}
