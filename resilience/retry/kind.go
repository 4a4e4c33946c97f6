package retry

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Kind is what is known of a failure, as far as a second attempt depends on it.
type Kind uint8

const (
	// None is no failure.
	None Kind = iota
	// Unknown is any failure not named here: an error of the application, 500,
	// INTERNAL. Work may have been done.
	Unknown
	// Dial is a connection that could not be made: name not found, refused,
	// no route, time-out while connecting. Nothing was sent.
	Dial
	// Refused is a stream that the other side refused unseen: HTTP/2
	// REFUSED_STREAM (RFC 9113, section 8.7).
	Refused
	// Unavailable is the other side's word that it took no work: HTTP 503,
	// gRPC UNAVAILABLE. It is a convention: a server that begins and then
	// answers so breaks it.
	Unavailable
	// Timeout is no answer in time, 504, 408, DEADLINE_EXCEEDED: work may have
	// been done, or still be.
	Timeout
	// Broken is a connection or stream that broke after the request was sent:
	// reset, EOF, 502. As Timeout: nobody knows.
	Broken
	// Overload is the other side's word that it has too much: 429,
	// RESOURCE_EXHAUSTED. More of the same does not help.
	Overload
	// Canceled is the caller's own end.
	Canceled
	// Local is a refusal in this process: breaker, limiter, throttle, drain.
	// Going to another node is routing, not a retry.
	Local
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"none", "unknown", "dial", "refused", "unavailable", "timeout", "broken", "overload", "canceled", "local"}
	if int(k) < len(names) {
		return names[k]
	}
	return "invalid"
}

// Again is the table: whether a failure of this kind may be tried again. What
// surely failed before work began may; what nobody knows may if the request is
// marked idempotent; the rest never.
//
//	kind          plain   idempotent
//	dial          yes     yes
//	refused       yes     yes
//	unavailable   yes     yes
//	timeout       no      yes
//	broken        no      yes
//	all others    no      no
func (k Kind) Again(m Mark) bool {
	switch k {
	case Dial, Refused, Unavailable:
		return true
	case Timeout, Broken:
		return m == Idempotent
	}
	return false
}

// Mark is what the caller knows of a request. The zero value promises nothing.
type Mark uint8

const (
	// Plain promises nothing: done twice, the request may do harm.
	Plain Mark = iota
	// Idempotent promises that doing the request twice is as doing it once.
	Idempotent
)

// Error is a failure with what an adapter knows of it.
type Error struct {
	Kind Kind
	// Pushback is the other side's wish: wait at least so long before the next
	// attempt; negative means no further attempt. 0 means it said nothing.
	Pushback time.Duration
	// Err is the failure itself.
	Err error
}

// Error returns the text of Err.
func (e *Error) Error() string {
	if e.Err == nil {
		return "retry: " + e.Kind.String()
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// As wraps err so that KindOf finds kind; nil stays nil.
func As(kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Err: err}
}

// streamError is what an HTTP/2 stream error of net/http turns itself into, by
// the names and types of its fields (its As method), without importing HTTP/2.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "http2 stream error" }

// refusedStream is REFUSED_STREAM, RFC 9113, section 7.
const refusedStream = 7

// KindOf returns the kind of an error: what an Error in its chain says, else what
// the errors of package net, net/http, context and syscall mean.
func KindOf(err error) Kind {
	var (
		known  *Error
		op     *net.OpError
		dns    *net.DNSError
		stream streamError
		timed  interface{ Timeout() bool }
	)
	switch {
	case err == nil:
		return None
	case errors.As(err, &known):
		return known.Kind
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &dns), errors.Is(err, syscall.ECONNREFUSED):
		return Dial // before Timeout: a dial that timed out sent nothing
	case errors.As(err, &stream):
		if stream.Code == refusedStream {
			return Refused
		}
		return Broken
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timed) && timed.Timeout():
		return Timeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Broken
	}
	return Unknown
}

// KindOfHTTP returns the kind of an HTTP status; under 400 it is None.
func KindOfHTTP(status int) Kind {
	switch {
	case status < 400:
		return None
	case status == 503:
		return Unavailable
	case status == 408 || status == 504:
		return Timeout
	case status == 502:
		return Broken
	case status == 429:
		return Overload
	}
	return Unknown
}

// KindOfGRPC returns the kind of a gRPC status code by its number.
func KindOfGRPC(code uint32) Kind {
	switch code {
	case 0:
		return None
	case 1: // CANCELLED
		return Canceled
	case 4: // DEADLINE_EXCEEDED
		return Timeout
	case 8: // RESOURCE_EXHAUSTED
		return Overload
	case 14: // UNAVAILABLE
		return Unavailable
	}
	return Unknown
}

// PushbackHTTP reads a Retry-After header of seconds or of an HTTP date (RFC
// 9110, section 10.2.3), the date against now; 0 when it says nothing readable.
func PushbackHTTP(value string, now time.Time) time.Duration {
	if s, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// PushbackGRPC reads grpc-retry-pushback-ms (gRPC A6): what is negative or
// unreadable asks for no further attempt; an empty value says nothing.
func PushbackGRPC(value string) time.Duration {
	if value == "" {
		return 0
	}
	ms, err := strconv.ParseInt(value, 10, 32)
	if err != nil || ms < 0 {
		return -1
	}
	return time.Duration(ms) * time.Millisecond
}

func pushback(err error) time.Duration {
	var known *Error
	if errors.As(err, &known) {
		return known.Pushback
	}
	return 0
}
