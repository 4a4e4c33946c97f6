package placement

import "testing"

// Lookups allocate nothing, replicas nothing but room.
func TestLookupsDoNotAllocate(t *testing.T) {
	for _, spec := range []string{"ring r3 zones", "jump r3 zones", "jumpback r3", "rendezvous r3 zones", "rendezvous:1024 r3", "maglev:251 r3 zones", "slots:1024 r3 zones", "slots crc16 {}"} {
		table := first(t, specOf(spec), zonedNodes(20, 4))
		list, i := make([]int, 0, 64), 0
		keys := []string{"a", "user:1", "{tag}:2", "a longer key than the others are"}
		if n := testing.AllocsPerRun(100, func() {
			key := keys[i%len(keys)]
			i++
			if x, err := table.Owner(key); err != nil || x != table.Locate(table.Hash(key)) {
				t.Fatal(x, err)
			}
			list = table.AppendReplicas(list[:0], table.Hash(key), 3)
		}); n != 0 {
			t.Errorf("%s: %v allocations a lookup", spec, n)
		}
	}
}
