package foreign_test

import (
	"fmt"

	"github.com/shardd/shardd/migrate/foreign"
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
