package fence

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl"
)

// The headers that carry a fence over HTTP.
const (
	HeaderToken    = "Fencing-Token"    // the fence, in decimal
	HeaderResource = "Fencing-Resource" // what it guards: the name of the lock, or what the two sides agreed on
)

// A Guarder runs a write if its fence is good. [Memory] and [Holders] are such; a service
// that keeps its fences elsewhere writes its own.
type Guarder interface {
	Guard(ctx context.Context, resource string, fence uint64, write func(ctx context.Context) error) error
}

// A ReaderGuarder is a Guarder that can run what only reads, too, if its fence is good,
// and finds out afterwards whether it still is.
type ReaderGuarder interface {
	Guarder
	GuardReader(ctx context.Context, resource string, fence uint64, read func(ctx context.Context) error) error
}

// Handler refuses requests with stale fences, for a service that writes. resource says
// what a request writes to, from its path say: a fence for something else is no fence for
// that. Where it is nil, the header says it, and who sends the request is trusted with
// that. All requests need both headers, but for GET, HEAD and OPTIONS: those pass, unless
// g is a [ReaderGuarder] and they have the headers, for what they read. What is refused
// gets a body of application/problem+json (RFC 9457):
//
//   - 409 Conflict: the fence is stale. "fence" and "highest" have both.
//   - 428 Precondition Required: a header is missing.
//   - 400 Bad Request: a header comes twice, is no fence, or names another resource.
//   - 503 Service Unavailable: the guard failed.
//
// A handler runs inside of the guard: with [Memory] no two write to one resource at the
// same time. Where the guard fails after that, in the commit of a transaction say, the
// connection is ended: the client must not take the handler's answer for true. Who is let
// in by the headers is no matter of this package: authenticate before.
func Handler(g Guarder, resource func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard := g.Guard
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		if reads {
			readers, can := g.(ReaderGuarder)
			if !can || r.Header.Values(HeaderToken) == nil && r.Header.Values(HeaderResource) == nil {
				next.ServeHTTP(w, r)
				return
			}
			guard = readers.GuardReader
		}
		name, fence, trouble := headers(r.Header)
		if trouble == nil && resource != nil && resource(r) != name {
			if reads { // under a lock on something else
				next.ServeHTTP(w, r)
				return
			}
			trouble = &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s is %.40q, and not what the request writes to", HeaderResource, name)}
		}
		if trouble != nil {
			trouble.write(w)
			return
		}
		ran := false
		err := guard(r.Context(), name, fence, func(ctx context.Context) error {
			ran = true
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		switch {
		case err != nil && ran:
			panic(http.ErrAbortHandler)
		case err != nil:
			problemOf(err).write(w)
		}
	})
}

// headers reads what a request carries.
func headers(h http.Header) (resource string, fence uint64, trouble *problem) {
	tokens, resources := h.Values(HeaderToken), h.Values(HeaderResource)
	switch {
	case len(tokens) == 0 || len(resources) == 0:
		return "", 0, &problem{Status: http.StatusPreconditionRequired, Detail: "needs the headers " + HeaderToken + " and " + HeaderResource}
	case len(tokens) > 1 || len(resources) > 1:
		return "", 0, &problem{Status: http.StatusBadRequest, Detail: "one fence at a time: a header comes twice"}
	}
	fence, err := strconv.ParseUint(tokens[0], 10, 64)
	if err != nil {
		return "", 0, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s is no number: %.40q", HeaderToken, tokens[0])}
	}
	if err := validate(resources[0], fence); err != nil {
		return "", 0, problemOf(err)
	}
	return resources[0], fence, nil
}

// Transport is an http.RoundTripper that sends the fence of the lease under which a
// request is made, as Do has it in the context, and the lease's name as the resource. A
// request under no such lease, and one that has the headers already, is sent as it is.
type Transport struct {
	Base http.RoundTripper // sends; default: http.DefaultTransport

	// Resource returns the name of the lock that guards what a request writes to, from
	// its path say. Required. "" sends the request as it is.
	Resource func(*http.Request) string
}

// RoundTrip implements http.RoundTripper. What [Handler] refuses is an answer like any
// other, see [ResponseError]. Without a Resource the error matches [pawl.ErrInvalid], and
// nothing is sent.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Resource == nil {
		if r.Body != nil {
			_ = r.Body.Close() // as every RoundTripper must
		}
		return nil, &pawl.InvalidError{What: "Transport", Problem: "has no Resource", Allowed: "a function that names the lock"}
	}
	base, name := cmp.Or(t.Base, http.DefaultTransport), t.Resource(r)
	fence, ok := pawl.FenceOf(r.Context(), name)
	if ok && r.Header.Get(HeaderToken) == "" && r.Header.Get(HeaderResource) == "" {
		r = r.Clone(r.Context())
		r.Header.Set(HeaderToken, strconv.FormatUint(fence, 10))
		r.Header.Set(HeaderResource, name)
	}
	return base.RoundTrip(r)
}
