package fence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl"
)

// The headers that carry a fence over HTTP.
const (
	HeaderToken    = "Fencing-Token"    // the fence, in decimal
	HeaderResource = "Fencing-Resource" // what it guards: the name of the lock, or what the two sides agreed on
)

// A Guarder runs a write if its fence is good. [Memory] is one; a service that keeps its
// fences elsewhere writes its own.
type Guarder interface {
	Guard(ctx context.Context, resource string, fence uint64, write func(ctx context.Context) error) error
}

// Handler refuses requests with stale fences, for a service that writes. resource says
// what a request writes to, from its path say: a fence for something else is no fence for
// that. Where it is nil, the header says it, and who sends the request is trusted with
// that. Requests that are GET, HEAD or OPTIONS pass; all others need both headers. What
// is refused gets a body of application/problem+json (RFC 9457):
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
		if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
			next.ServeHTTP(w, r)
			return
		}
		name, fence, trouble := headers(r.Header)
		if trouble == nil && resource != nil && resource(r) != name {
			trouble = &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s is %.40q, and not what the request writes to", HeaderResource, name)}
		}
		if trouble != nil {
			trouble.write(w)
			return
		}
		ran := false
		err := g.Guard(r.Context(), name, fence, func(ctx context.Context) error {
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

// A problem is the body of an answer, as in RFC 9457.
type problem struct {
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Resource string `json:"resource,omitempty"`
	Fence    uint64 `json:"fence,omitempty"`
	Highest  uint64 `json:"highest,omitempty"`
}

func problemOf(err error) *problem {
	if stale, ok := errors.AsType[*StaleError](err); ok {
		return &problem{Status: http.StatusConflict, Detail: stale.Error(), Resource: stale.Resource, Fence: stale.Fence, Highest: stale.Highest}
	}
	if errors.Is(err, pawl.ErrInvalid) {
		return &problem{Status: http.StatusBadRequest, Detail: err.Error()}
	}
	// The reason is nobody's business outside.
	return &problem{Status: http.StatusServiceUnavailable, Detail: "the fence cannot be checked"}
}

func (p *problem) write(w http.ResponseWriter) {
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// Transport is an http.RoundTripper that sends the fence of a lease under which a request
// is made, as Do has it in the context, and the lease's name as the resource. A request
// without such a lease, and one that has the headers already, is sent as it is.
type Transport struct {
	Base http.RoundTripper // sends; default: http.DefaultTransport

	// Resource is the name of the lock that guards what the service writes to. Default:
	// that of the innermost lease, which is right where there is only one.
	Resource string
}

// RoundTrip implements http.RoundTripper. A 409 of [Handler] is an answer like any other,
// see [ResponseError].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	name := t.Resource
	fence, ok := pawl.FenceOf(r.Context(), name)
	if lease, under := pawl.LeaseFromContext(r.Context()); name == "" && under {
		name, fence, ok = lease.Name(), lease.Fence(), true
	}
	if ok && r.Header.Get(HeaderToken) == "" && r.Header.Get(HeaderResource) == "" {
		r = r.Clone(r.Context())
		r.Header.Set(HeaderToken, strconv.FormatUint(fence, 10))
		r.Header.Set(HeaderResource, name)
	}
	return base.RoundTrip(r)
}

// ResponseError returns a [*StaleError] if an answer says that the request's fence was
// stale, and nil otherwise. It reads the body then, and leaves closing it to the caller.
func ResponseError(r *http.Response) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // what cannot be parsed is none
	if r.StatusCode != http.StatusConflict || kind != "application/problem+json" {
		return nil
	}
	var p problem
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16)).Decode(&p); err != nil || p.Highest == 0 {
		return nil //nolint:nilerr // it is no answer of Handler's
	}
	return &StaleError{p.Resource, p.Fence, p.Highest}
}
