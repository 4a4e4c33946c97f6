package rendezvous

import "fmt"

func check(ids []string, weights []uint32) error {
	if len(ids) != len(weights) {
		return fmt.Errorf("%w: %d ids and %d weights", ErrInput, len(ids), len(weights))
	}
	if len(ids) > MaxNodes {
		return fmt.Errorf("%w: %d, at most %d", ErrTooManyNodes, len(ids), MaxNodes)
	}
	for i := 1; i < len(ids); i++ {
		if ids[i-1] >= ids[i] {
			return fmt.Errorf("%w: %q at %d is followed by %q", ErrOrder, ids[i-1], i-1, ids[i])
		}
	}
	return nil
}
