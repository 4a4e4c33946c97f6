package topology

import (
	"errors"
	"fmt"
)

// Errors that callers decide on.
var (
	// ErrCorrupt: bytes do not decode, are not canonical, or do not match
	// their digest. Fetch them again; keep what you have.
	ErrCorrupt = errors.New("topology: corrupt")
	// ErrUnknown: the bytes are whole, but name something this release does
	// not know (an algorithm, a mapping version, a field). Keep what you
	// have and upgrade; never guess.
	ErrUnknown = errors.New("topology: not known to this release")
	// ErrMissingObject: a table that the topology refers to is not attached.
	ErrMissingObject = errors.New("topology: missing object")
	// ErrDeltaBase: a delta was applied to another topology than the one it
	// was made from. Keep what you have and fetch the whole version.
	ErrDeltaBase = errors.New("topology: delta is for another version")
)

// FieldError is a refused value and where it stands. Path is written as in a
// cluster file, such as "nodes[2].weight".
type FieldError struct {
	Path string
	Err  error
}

// Error returns "path: reason".
func (e *FieldError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// unknownError is a message that counts as ErrUnknown.
type unknownError string

func (e unknownError) Error() string { return string(e) }

func (e unknownError) Is(target error) bool { return target == ErrUnknown }

func fieldUnknown(path, format string, args ...any) error {
	return &FieldError{Path: path, Err: unknownError(fmt.Sprintf(format, args...))}
}

func fieldErr(path, format string, args ...any) error {
	return &FieldError{Path: path, Err: fmt.Errorf(format, args...)}
}
