package keyhash_test

import (
	"fmt"

	"github.com/shardd/shardd/keyhash"
)

// Keys with the same hash tag have the same hash, and so the same node.
func ExampleNew() {
	hash, err := keyhash.New(keyhash.CRC16, "{}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hash.Sum("{user:1}:cart") == hash.Sum("{user:1}:name"), hash.Sum("user:1") == hash.Sum("user:2"))
	fmt.Println(keyhash.Slot("{user:1}:cart")) // as CLUSTER KEYSLOT says
	// Output:
	// true false
	// 10778
}

// HAProxy's "balance uri depth 1" hashes the first directory of a path; "whole"
// hashes the query too.
func ExampleInput() {
	sdbm, err := keyhash.New(keyhash.SDBM, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, in := range []keyhash.Input{keyhash.InputPath, keyhash.InputWholeURI} {
		hash := sdbm.WithInput(in, 0)
		fmt.Println(hash.Sum("/img/a.png?v=1") == hash.Sum("/img/a.png?v=2"))
	}
	first := sdbm.WithInput(keyhash.InputPath, 1)
	fmt.Println(first.Sum("/img/a.png") == first.Sum("/img/b.png"))
	// Output:
	// true
	// false
	// true
}
