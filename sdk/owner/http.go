package owner

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/shardd/shardd/sdk/converge"
)

// Guard lets requests through to keys that the node owns, and tells the others where
// they are wrong.
type Guard struct {
	Owner *Owner
	// Past gives stale clients the newer topology (converge.Remember); nil = they are
	// only told that they are wrong.
	Past *converge.Past
	// Wait is how long a request may wait for a key that is being acquired, or for
	// the version that its client has already; 0 means 200 ms, below 0 not at all.
	Wait time.Duration
}

// Verdict is what a guard says of a request.
type Verdict struct {
	Claim  Claim
	Err    error  // nil = go on
	Answer []byte // what brings a stale client forward; nil if there is nothing
	Retry  bool   // the same request may do here in a moment
}

// Judge looks at a request for key, whose client presented how it was routed
// (converge.Present; "" = it did not). It waits if that can help.
func (g *Guard) Judge(ctx context.Context, key, presented string) Verdict {
	limit := g.Wait
	if limit == 0 {
		limit = 200 * time.Millisecond
	}
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		v := g.judge(key, presented)
		if v.Err == nil || !v.Retry || time.Now().Add(pause).After(deadline) || !wait(ctx, pause) {
			return v
		}
	}
}

func (g *Guard) judge(key, presented string) Verdict {
	claim, err := g.Owner.Owns(key)
	if err == nil {
		return Verdict{Claim: claim}
	}
	v := Verdict{Err: err, Retry: true}
	var not *NotOwnerError
	if !errors.As(err, &not) {
		return v // pending, or no lease
	}
	ref, bad := converge.Parse(presented)
	if bad != nil {
		v.Retry = false
		return v
	}
	if ref.Version.Compare(not.Version) > 0 {
		return v // the client is ahead of this node
	}
	v.Retry = false
	if g.Past != nil {
		v.Answer, _ = g.Past.Answer(ref)
	}
	return v
}

// claimKey is the key of a Claim in a context.
type claimKey struct{}

// WithClaim returns a context with a claim, for those who write middleware.
func WithClaim(ctx context.Context, c Claim) context.Context {
	return context.WithValue(ctx, claimKey{}, c)
}

// ClaimFrom returns the claim under which a request is served, in handlers behind
// Guard.Middleware and the interceptors of ownergrpc.
func ClaimFrom(ctx context.Context) (Claim, bool) {
	c, ok := ctx.Value(claimKey{}).(Claim)
	return c, ok
}

// Middleware answers requests for keys that the node does not own: 421 Misdirected
// Request, with the newer topology if the client's is stale, so that its transport
// (httplb.Config.Converge) sends the request to the right node at once; and 503 with
// Retry-After where the key is on its way here. Others go on to next with their claim.
func (g *Guard) Middleware(key func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := g.Judge(r.Context(), key(r), r.Header.Get(converge.Header))
		switch {
		case v.Err == nil:
			next.ServeHTTP(w, r.WithContext(WithClaim(r.Context(), v.Claim)))
		case v.Retry:
			w.Header().Set("Retry-After", "1")
			http.Error(w, v.Err.Error(), http.StatusServiceUnavailable)
		case v.Answer != nil:
			w.Header().Set("Content-Type", converge.ContentType)
			w.WriteHeader(http.StatusMisdirectedRequest)
			_, _ = w.Write(v.Answer) // a client that is gone needs it no more
		default:
			http.Error(w, v.Err.Error(), http.StatusMisdirectedRequest)
		}
	})
}
