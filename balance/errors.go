package balance

import (
	"errors"
	"fmt"
)

var (
	// ErrNoNode says that no candidate may be picked: the set is empty, or every
	// weight is 0, or every node is down. Wait for another topology, or fall
	// back to another set.
	ErrNoNode = errors.New("balance: no eligible node")

	// ErrExcluded says that there are eligible nodes, but all of them are on the
	// exclude list: every replica has been tried. It wraps ErrNoNode. A caller
	// that would rather try a node twice picks again without the list.
	ErrExcluded = fmt.Errorf("%w: all of them are excluded", ErrNoNode)

	// ErrInvalid says that a set or a configuration was refused; the text names
	// the field and what to do. Nothing has changed.
	ErrInvalid = errors.New("balance: invalid")
)

// Invalidf returns an error that wraps ErrInvalid, for the packages beside this
// one. The format begins with the package's name.
func Invalidf(format string, args ...any) error {
	return &invalid{text: fmt.Sprintf(format, args...)}
}

type invalid struct{ text string }

func (e *invalid) Error() string { return e.text }
func (e *invalid) Unwrap() error { return ErrInvalid }
