package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/topology"
)

// Exit codes. One number, one meaning, for all commands.
const (
	ExitOK          = 0
	ExitFailed      = 1 // was tried and did not work
	ExitUsage       = 2 // cannot be done as asked: flags, arguments, a file that cannot be used
	ExitUnreachable = 3 // a server or store did not answer
	ExitConflict    = 4 // somebody else changed it, or has it already
	ExitRefused     = 5 // refused by a safety check; a flag allows it
)

// coded is an error that knows its exit code.
type coded struct {
	code int
	err  error
}

func (e *coded) Error() string { return e.err.Error() }

func (e *coded) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &coded{ExitUsage, fmt.Errorf(format, args...)}
}

// errQuiet ends a command without a message: whoever read its output left.
var errQuiet = errors.New("standard output is closed")

// exitCode says by whom err is to be mended.
func exitCode(err error) int {
	var c *coded
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &c):
		return c.code
	case is(err, membership.ErrConflict, membership.ErrExists, membership.ErrDuplicate, membership.ErrForeign, api.ErrCluster, api.ErrForked, api.ErrOlder):
		return ExitConflict
	case is(err, membership.ErrFrozen, membership.ErrWentBack, api.ErrDeclined):
		return ExitRefused
	case errors.Is(err, membership.ErrUnreachable):
		return ExitUnreachable
	case is(err, foreign.ErrCannot, migrate.ErrFile, migrate.ErrCluster, migrate.ErrNoServer, membership.ErrInvalid):
		return ExitUsage
	}
	return ExitFailed
}

func is(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// report prints err once and returns its exit code.
func report(env Env, program string, err error) int {
	code := exitCode(err)
	switch {
	case err == nil || errors.Is(err, errQuiet):
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(env.Stderr, "%s: interrupted\n", program)
	default:
		fmt.Fprintf(env.Stderr, "%s: %s\n", program, message(err))
	}
	return code
}

// message is the text of err on one line. What a server sends and this program
// does not know is mended by another program, not by other input.
func message(err error) string {
	text := strings.ReplaceAll(api.Readable(err), "\n", "; ")
	if errors.Is(err, topology.ErrUnknown) && exitCode(err) == ExitFailed {
		text += "; upgrade this program"
	}
	return text
}

// writeError says what a failed write of the output means.
func writeError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EPIPE) {
		return &coded{ExitFailed, errQuiet}
	}
	return &coded{ExitFailed, fmt.Errorf("standard output: %w", err)}
}
