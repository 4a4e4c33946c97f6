package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Errors that callers decide on. All are wrapped with the operation.
var (
	// ErrConflict: a compared key was written since; see CompareError.
	ErrConflict = errors.New("etcdkv: conflict")
	// ErrUnreachable: etcd did not answer in time, or has no leader. Try
	// again. After a Commit the outcome is unknown.
	ErrUnreachable = errors.New("etcdkv: etcd unreachable")
	// ErrTooLarge: over a limit, which the message names with the size.
	// Nothing was sent.
	ErrTooLarge = errors.New("etcdkv: too large")
	// ErrCorrupt: a key holds what this program did not write, or a content
	// does not have its digest. The message names the key.
	ErrCorrupt = errors.New("etcdkv: corrupt")
	// ErrMissing: a content is not there, or only part of it. Whoever named
	// it has probably been replaced meanwhile: read again.
	ErrMissing = errors.New("etcdkv: content is missing")
	// ErrRefused: etcd refuses the call for good: no permission, no space,
	// wrong credentials. The message says which; an operator has to act.
	ErrRefused = errors.New("etcdkv: etcd refuses")
)

// CompareError says which comparison of a transaction failed. It is ErrConflict.
type CompareError struct {
	Key  string
	Want int64 // the revision compared with; 0 = the key must not exist
	Have int64 // the revision found; 0 = the key does not exist
}

// Error names the key.
func (e *CompareError) Error() string {
	switch {
	case e.Want == 0:
		return fmt.Sprintf("etcdkv: conflict: %s is there already (revision %d)", e.Key, e.Have)
	case e.Have == 0:
		return fmt.Sprintf("etcdkv: conflict: %s is gone", e.Key)
	}
	return fmt.Sprintf("etcdkv: conflict: %s was written at revision %d, after %d", e.Key, e.Have, e.Want)
}

// Is makes the error an ErrConflict.
func (e *CompareError) Is(target error) bool { return target == ErrConflict }

// Temporary reports whether a call that failed with err may succeed when it is
// made again.
func temporary(err error) bool {
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		return true
	case codes.ResourceExhausted:
		return errors.Is(err, rpctypes.ErrTooManyRequests)
	case codes.Unknown: // a server without a quorum answers some calls so
		return strings.Contains(err.Error(), "timed out") || strings.Contains(err.Error(), "leader changed") || strings.Contains(err.Error(), "server stopped")
	}
	return false
}

func code(err error) codes.Code {
	var etcd rpctypes.EtcdError
	switch {
	case errors.As(err, &etcd):
		return etcd.Code()
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	return status.Code(err)
}

// permanent wraps an error that trying again does not mend.
func permanent(op string, err error) error {
	switch code(err) {
	case codes.InvalidArgument:
		if errors.Is(err, rpctypes.ErrRequestTooLarge) || errors.Is(err, rpctypes.ErrTooManyOps) {
			return fmt.Errorf("%w: %s: %w; the server's own limit is lower than etcd's default, raise --max-request-bytes and --max-txn-ops", ErrTooLarge, op, err)
		}
	case codes.ResourceExhausted:
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return fmt.Errorf("%w: %s: %w; compact and defragment etcd, then disarm its alarm", ErrRefused, op, err)
		}
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("%w: %s: %w; check user and role", ErrRefused, op, err)
	}
	return fmt.Errorf("etcdkv: %s: %w", op, err)
}
