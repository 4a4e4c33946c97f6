package foreign_test

import (
	"errors"
	"fmt"

	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

func ExampleParse() {
	data := []byte(`
upstream backend {
    hash $request_uri consistent;
    server 10.0.0.1:8080 weight=2;
    server 10.0.0.2:8080 down;
}
`)
	format, _ := foreign.Detect(data)
	r, err := foreign.Parse(format, "nginx.conf", data, foreign.Options{Cluster: "web"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(clusterfile.Format(r.Declared)))

	_, err = foreign.Parse(foreign.Nginx, "nginx.conf", []byte("upstream backend {\n least_conn;\n}"), foreign.Options{})
	fmt.Println(err)
	// Output:
	// cluster: web
	// compat: {mode: nginx}
	// replicas: 1
	// bounded_load: 0
	// zone_aware: false
	// nodes:
	//   - {id: "10.0.0.1:8080", addr: "10.0.0.1:8080", weight: 2}
	//   - {id: "10.0.0.2:8080", addr: "10.0.0.2:8080", weight: 1, state: down}
	// nginx.conf:2: least_conn: sends keys by load, so no key has a node; nothing to keep
}

// Where a file is wrong.
func ExampleError() {
	_, err := foreign.Parse(foreign.Nginx, "nginx.conf", []byte("upstream backend {\n least_conn;\n}"), foreign.Options{})
	var at *foreign.Error
	if errors.As(err, &at) {
		fmt.Println(at.File, at.Line, at.Directive)
	}
	// Output: nginx.conf 2 least_conn
}

// A cluster that follows nginx's mapping, written back as nginx's configuration.
func ExampleExport() {
	table, err := placement.Update(nil, topology.Draft{
		Cluster: "web", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1},
		Spec: topology.Spec{Algorithm: topology.Compat, Compat: topology.Foreign{Mode: topology.ModeNginx}},
		Nodes: []topology.Node{
			{ID: "a", Addr: "10.0.0.1:8080", Weight: 2, Position: 1},
			{ID: "b", Addr: "10.0.0.2:8080", Weight: 1, Position: 2},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var file foreign.Exported
	file, err = foreign.Export(foreign.Nginx, table, foreign.ExportOptions{Key: "$uri", Lines: []string{"keepalive 32;"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(file.Data))
	// Output:
	// upstream web {
	//     hash $uri consistent;
	//     keepalive 32;
	//     server 10.0.0.1:8080 weight=2;
	//     server 10.0.0.2:8080;
	// }
}

// A Redis Cluster's masters with their slots, as CLUSTER SHARDS has them.
func ExampleRedisCluster() {
	r, err := foreign.RedisCluster([]foreign.RedisMaster{
		{ID: "07c37dfeb235213a872192d90877d0cd55635b91", Addr: "10.0.0.1:6379", Slots: []foreign.SlotRange{{First: 0, Last: 8191}}},
		{ID: "e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca", Addr: "10.0.0.2:6379", Slots: []foreign.SlotRange{{First: 8192, Last: 16383}}},
	}, foreign.Options{Cluster: "cache"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Declared.Cluster, r.Declared.Spec.Compat.Mode, len(r.Declared.Nodes))
	// Output: cache redis-slots 2
}
