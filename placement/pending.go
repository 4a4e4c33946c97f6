package placement

// Stand-ins for algorithms that are still being written.
type pending struct{}

func (pending) Len() int                                        { return 0 }
func (pending) Size() int                                       { return 0 }
func (pending) Locate(h uint64) int                             { return -1 }
func (pending) AppendReplicas(dst []int, h uint64, n int) []int { return dst }

type slotsTable = pending
