package clusterfile_test

import (
	"errors"
	"fmt"

	"github.com/shardd/shardd/topology/clusterfile"
)

func ExampleParse() {
	d, err := clusterfile.Parse("cluster.yaml", []byte(`
cluster: cache
algorithm: slots
key_hash: crc16
nodes:
  - {id: cache-a, addr: "10.0.0.1:6379"}
  - {id: cache-b, addr: "10.0.0.2:6379", weight: 2}
`))
	fmt.Println(d.Cluster, d.Spec.SlotCount, d.Spec.HashTag, d.Nodes[0].Weight, err)

	_, err = clusterfile.Parse("cluster.yaml", []byte(`
cluster: cache
algorithm: ring
nodes:
  - {id: cache-a, wieght: 2}
`))
	fmt.Println(err)
	// Output:
	// cache 16384 {} 1 <nil>
	// cluster.yaml:5:19: nodes[0]: unknown field "wieght"; did you mean "weight"?
}

// Where a file is wrong, for an editor.
func ExampleError() {
	_, err := clusterfile.Parse("cluster.yaml", []byte("cluster: cache\nalgorithm: ring\nring: {vnodes: -1}\n"))
	var at *clusterfile.Error
	if errors.As(err, &at) {
		fmt.Printf("%s, line %d, column %d, %s\n", at.File, at.Line, at.Col, at.Path)
	}
	// Output: cluster.yaml, line 3, column 16, ring.vnodes
}
