package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Errors of the API itself; the rest are those of package membership. All
// arrive wrapped in an *Error.
var (
	// ErrCluster: the server's cluster of that name has another id than the
	// one presented. Mend the address.
	ErrCluster = errors.New("api: another cluster")
	// ErrForked: the version presented is not in the server's chain.
	ErrForked = errors.New("api: another line of versions")
	// ErrOlder: the version presented is newer than all that the server has:
	// it lags, or its store went back. Try another server.
	ErrOlder = errors.New("api: server has an older version")
	// ErrRefused: the server does not serve this request at all: no such
	// path or method, a foreign Host or Origin, a wrong media type.
	ErrRefused = errors.New("api: request refused")
	// ErrInternal: the server failed. Its log says more.
	ErrInternal = errors.New("api: server failed")
)

// Code names an error on the wire. Codes are never renamed.
type Code string

// The codes.
const (
	CodeBadRequest Code = "bad_request" // cannot be read: JSON, query, header
	CodeInvalid    Code = "invalid"     // can be read, but is refused
	CodeConflict   Code = "conflict"
	CodeExists     Code = "exists"
	CodeNoCluster  Code = "no_cluster"
	CodeNoNode     Code = "no_node"
	CodeNoVersion  Code = "no_version"
	CodeNoObject   Code = "no_object"
	CodeTooLarge   Code = "too_large"
	CodeStore      Code = "store_unreachable"
	CodeCorrupt    Code = "store_corrupt"
	CodeCluster    Code = "other_cluster"
	CodeForked     Code = "forked"
	CodeOlder      Code = "older"
	CodeNotFound   Code = "not_found"
	CodeMethod     Code = "method_not_allowed"
	CodeForbidden  Code = "forbidden"
	CodeMediaType  Code = "media_type"
	CodeStopping   Code = "stopping" // the server shuts down; try another one
	CodeInternal   Code = "internal"
	CodeWentBack   Code = "store_went_back" // nothing is published until the epoch is raised
	CodeFrozen     Code = "frozen"          // an operator froze the cluster
	CodeRefused    Code = "refused"         // by a safety check; the hint names what overrules it
)

// Error is an error on the wire.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`        // what is wrong and where
	Hint    string `json:"hint,omitempty"` // what to do

	// Status is the HTTP status that carried the error; 0 = the one of its code.
	Status int `json:"-"`
	// RetryAfter is how long the server asks to wait before the next try;
	// 0 = it does not say.
	RetryAfter time.Duration `json:"-"`
}

// ErrorBody is the JSON of an error answer.
type ErrorBody struct {
	Error *Error `json:"error"`
}

// Error returns message and hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Unwrap returns the sentinel of the code.
func (e *Error) Unwrap() error { return e.meaning().sentinel }

// HTTPStatus returns the status to answer with.
func (e *Error) HTTPStatus() int {
	if e.Status != 0 {
		return e.Status
	}
	return e.meaning().status
}

type meaning struct {
	code     Code
	status   int
	sentinel error
}

// meanings says for each code how it is answered and what it wraps on arrival.
// For FromError the first whose sentinel an error wraps counts.
var meanings = [...]meaning{
	{CodeInvalid, http.StatusUnprocessableEntity, membership.ErrInvalid},
	{CodeConflict, http.StatusConflict, membership.ErrConflict},
	{CodeExists, http.StatusConflict, membership.ErrExists},
	{CodeNoCluster, http.StatusNotFound, membership.ErrNoCluster},
	{CodeNoNode, http.StatusNotFound, membership.ErrNoNode},
	{CodeNoVersion, http.StatusNotFound, membership.ErrNoVersion},
	{CodeTooLarge, http.StatusRequestEntityTooLarge, membership.ErrTooLarge},
	{CodeStore, http.StatusServiceUnavailable, membership.ErrUnreachable},
	{CodeCorrupt, http.StatusInternalServerError, membership.ErrCorrupt},
	{CodeWentBack, http.StatusServiceUnavailable, membership.ErrWentBack},
	{CodeFrozen, http.StatusLocked, membership.ErrFrozen},
	{CodeRefused, http.StatusPreconditionRequired, ErrDeclined},
	{CodeCluster, http.StatusConflict, ErrCluster},
	{CodeForked, http.StatusConflict, ErrForked},
	{CodeOlder, http.StatusConflict, ErrOlder},
	{CodeStopping, http.StatusServiceUnavailable, membership.ErrUnreachable},
	{CodeBadRequest, http.StatusBadRequest, membership.ErrInvalid},
	{CodeNoObject, http.StatusNotFound, membership.ErrNoVersion},
	{CodeNotFound, http.StatusNotFound, ErrRefused},
	{CodeMethod, http.StatusMethodNotAllowed, ErrRefused},
	{CodeForbidden, http.StatusForbidden, ErrRefused},
	{CodeMediaType, http.StatusUnsupportedMediaType, ErrRefused},
	{CodeInternal, http.StatusInternalServerError, ErrInternal},
}

// meaning returns what the code stands for; a code of a later release stands
// for what its status says.
func (e *Error) meaning() meaning {
	for _, m := range meanings {
		if m.code == e.Code {
			return m
		}
	}
	switch {
	case e.Status == http.StatusServiceUnavailable:
		return meaning{e.Code, e.Status, membership.ErrUnreachable}
	case e.Status == http.StatusConflict:
		return meaning{e.Code, e.Status, membership.ErrConflict}
	case e.Status >= 400 && e.Status < 500:
		return meaning{e.Code, e.Status, ErrRefused}
	}
	return meaning{e.Code, http.StatusInternalServerError, ErrInternal}
}

// Errorf returns an error of this code.
func Errorf(code Code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// FromError returns err as it goes on the wire: the *Error in it if there is
// one, else the code of the sentinel that it wraps and a hint. What wraps none
// of them is internal: its text stays in the server's log.
func FromError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var field *topology.FieldError
	if errors.As(err, &field) && !errors.Is(err, membership.ErrInvalid) {
		return &Error{Code: CodeInvalid, Message: Readable(err), Hint: hints[CodeInvalid]}
	}
	for _, m := range meanings {
		if errors.Is(err, m.sentinel) {
			hint := hints[m.code]
			if errors.Is(err, placement.ErrMoving) { // nobody came between
				hint = hintMoving
			}
			return &Error{Code: m.code, Message: Readable(err), Hint: hint}
		}
	}
	return &Error{Code: CodeInternal, Message: "the server failed", Hint: "see the server's log"}
}

// hintMoving is for edits that a change in steps stands in the way of.
const hintMoving = "nothing was changed; see how the steps stand with shardd ramp, make what is left of them at once with shardd ramp finish, or turn them back with shardd ramp back"

var hints = map[Code]string{
	CodeInvalid:   "nothing was changed; correct it and send it again",
	CodeConflict:  "somebody else changed the cluster; read it again and decide anew",
	CodeNoCluster: "PUT its spec (shardd apply) to create it, or list the clusters with GET /v1/clusters",
	CodeNoNode:    "list the nodes with GET topology",
	CodeNoVersion: "GET history lists the versions that are kept",
	CodeStore:     "the server cannot reach etcd; clients go on with what they have. Try again",
	CodeFrozen:    "nothing was changed; shardd unfreeze lets edits be published again",
	CodeWentBack:  "look at what was restored, then: shardd epoch bump",
	CodeCorrupt:   "the store holds what this release cannot use; see the message",
}
