package owner_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/sdk/owner/memlease"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// serving is the owner of shard-1 when it has acquired its keys.
func serving(plane *shardtest.Plane, key string) (*owner.Owner, func()) {
	client := plane.Client()
	o, err := owner.New(client, memlease.New(), owner.Config{ID: "shard-1"})
	if err != nil {
		panic(err)
	}
	for _, err = o.Owns(key); err != nil; _, err = o.Owns(key) {
		time.Sleep(time.Millisecond)
	}
	return o, func() { o.Close(); client.Close() }
}

// Every write carries the fence: the store refuses a smaller one than it has seen,
// so a process that was suspended and wakes up writes nothing.
func ExampleClaim() {
	plane := shardtest.New(exampleTB{}, "shard-1", "shard-2") // or a source of sdk
	plane.Assign("user:1", "shard-1")
	o, end := serving(plane, "user:1")
	defer end()

	var claim owner.Claim
	claim, err := o.Owns("user:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := uint64(0) // in the store, beside the key
	write := func(fence uint64) bool {
		if fence < seen {
			return false
		}
		seen = fence
		return true
	}
	fmt.Println(write(claim.Fence), write(claim.Fence-1))
	// Output: true false
}

// A caller that came to the wrong node is told the right one.
func ExampleNotOwnerError() {
	plane := shardtest.New(exampleTB{}, "shard-1", "shard-2")
	plane.AssignAll(map[string]string{"user:1": "shard-1", "user:2": "shard-2"})
	o, end := serving(plane, "user:1")
	defer end()

	_, err := o.Owns("user:2")
	var elsewhere *owner.NotOwnerError
	fmt.Println(errors.As(err, &elsewhere), elsewhere.Node.ID, elsewhere.Version)
	// Output: true shard-2 1.2
}

// Before handlers: they see only requests for keys that the node owns.
func ExampleGuard() {
	plane := shardtest.New(exampleTB{}, "shard-1", "shard-2")
	plane.AssignAll(map[string]string{"1": "shard-1", "2": "shard-2"})
	o, end := serving(plane, "1")
	defer end()

	guard := &owner.Guard{Owner: o, Wait: -1}
	user := func(r *http.Request) string { return r.URL.Query().Get("user") }
	handler := guard.Middleware(user, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claim, ok := owner.ClaimFrom(r.Context())
		fmt.Println("served", ok, claim.Fence > 0)
	}))
	for _, target := range []string{"/?user=1", "/?user=2"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		fmt.Println(w.Code)
	}
	// Behind another kind of server: the same by hand.
	verdict := guard.Judge(context.Background(), "2", "")
	fmt.Println(verdict.Err != nil, verdict.Retry)
	// Output:
	// served true true
	// 200
	// 421
	// true false
}

// A store of leases of your own has these methods; memlease and etcdlease have
// them. A node's record says by which version it serves.
func ExampleLease() {
	ctx := context.Background()
	var leases owner.Leases = memlease.New()
	lease, err := leases.Take(ctx, "shard-1", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	held := lease
	if err := held.Settle(ctx, topology.Ref{Version: topology.Version{Epoch: 1, Seq: 4}}); err != nil {
		fmt.Println(err)
		return
	}
	var records []owner.Record
	records, _, err = held.Records(ctx)
	fmt.Println(records[0].ID, records[0].Settled.Version, err)
	fmt.Println(held.End(ctx))
	fmt.Println(errors.Is(held.Renew(ctx), owner.ErrLost))
	// Output:
	// shard-1 1.4 <nil>
	// <nil>
	// true
}
