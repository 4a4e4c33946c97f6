package retry

import (
	"context"
	"strconv"
)

// Names under which the number of the attempt travels, 1 for the first. Its
// presence says that a layer further out retries, so that no other does.
const (
	// HeaderAttempt is the HTTP header.
	HeaderAttempt = "Shardd-Attempt"
	// MetadataAttempt is the gRPC metadata key, the same in lower case.
	MetadataAttempt = "shardd-attempt"

	// HeaderEnvoyAttempt is Envoy's x-envoy-attempt-count, 1 for the first. It
	// is sent without any retry policy too, so only 2 or more counts.
	HeaderEnvoyAttempt = "X-Envoy-Attempt-Count"
	// MetadataGRPCPrevious is gRPC's number of attempts before this one (A6),
	// sent from the second attempt on.
	MetadataGRPCPrevious = "grpc-previous-rpc-attempts"

	// MaxAttempt is the largest number that travels; larger ones are cut to it.
	MaxAttempt = 999
)

type attemptKey struct{}

// WithAttempt returns a context that carries the number of an attempt, cut to
// 1..MaxAttempt.
func WithAttempt(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, attemptKey{}, min(MaxAttempt, max(1, n)))
}

// Attempt returns the number of the attempt that ctx belongs to. ok is false
// when no layer retries so far: whoever asks is the outermost one.
func Attempt(ctx context.Context) (n int, ok bool) {
	n, ok = ctx.Value(attemptKey{}).(int)
	return n, ok
}

// Inject gives the attempt number in ctx to set, for an outgoing request: pass
// HeaderAttempt or MetadataAttempt as key. Without a number it does nothing.
func Inject(ctx context.Context, key string, set func(key, value string)) {
	if n, ok := Attempt(ctx); ok {
		set(key, strconv.Itoa(n))
	}
}

// Extract returns a context with the attempt number of an incoming request; get
// returns the value of a header or metadata key, "" when there is none. Our own
// number wins; without it Envoy's and gRPC's count when they show a retry. A
// number of ours that cannot be read counts as 1: some layer retries. Without any
// it returns ctx.
func Extract(ctx context.Context, get func(key string) string) context.Context {
	for _, key := range [...]string{HeaderAttempt, MetadataAttempt} {
		if v := get(key); v != "" {
			return WithAttempt(ctx, number(v))
		}
	}
	if n := number(get(HeaderEnvoyAttempt)); n > 1 {
		return WithAttempt(ctx, n)
	}
	if n := number(get(MetadataGRPCPrevious)); n > 0 {
		return WithAttempt(ctx, n+1)
	}
	return ctx
}

// number reads decimal digits, cut at MaxAttempt; 0 for anything else.
func number(s string) (n int) {
	for i := range len(s) {
		d := int(s[i]) - '0'
		if d < 0 || d > 9 {
			return 0
		}
		n = min(MaxAttempt, 10*n+d)
	}
	return n
}
