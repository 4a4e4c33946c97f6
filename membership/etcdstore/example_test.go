package etcdstore_test

import (
	"context"
	"fmt"

	"github.com/shardd/shardd/membership/etcdstore"
)

// Needs an etcd at the endpoint, so it is compiled and not run.
func Example() {
	client, err := etcdstore.Dial(etcdstore.Config{Endpoints: []string{"127.0.0.1:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	store, err := etcdstore.New(client, etcdstore.Options{Prefix: "/shardd"})
	if err != nil {
		fmt.Println(err)
		return
	}
	names, err := store.List(context.Background())
	fmt.Println(names, err)
}
