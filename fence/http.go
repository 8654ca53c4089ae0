package fence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
)

// The headers that carry a fence over HTTP.
const (
	HeaderToken    = "Fencing-Token"    // the fence, in decimal
	HeaderResource = "Fencing-Resource" // the resource: the name of the lock, or another agreed name
)

// A Guarder runs a write if its fence is good. [Memory] and [Holders] are Guarders. A
// service that keeps its fences elsewhere implements its own.
type Guarder interface {
	Guard(ctx context.Context, resource string, fence uint64, write func(ctx context.Context) error) error
}

// A ReaderGuarder is a Guarder that also runs reads if their fence is good, and checks
// the fence again after the read.
type ReaderGuarder interface {
	Guarder
	GuardReader(ctx context.Context, resource string, fence uint64, read func(ctx context.Context) error) error
}

// Handler refuses requests with stale fences, for a service that writes. resource returns
// the resource that a request writes to, for example from its path, because a fence of
// another resource must not count. If resource is nil, Handler takes the resource from
// the header, and so trusts the sender. All requests need both headers, except GET, HEAD
// and OPTIONS. These pass, unless g is a [ReaderGuarder] and the request's headers name
// the resource: then Handler checks the fence for reading. A refused request gets a body
// of application/problem+json (RFC 9457):
//
//   - 409 Conflict: the fence is stale. The body has "fence" and "highest".
//   - 428 Precondition Required: a header is missing.
//   - 400 Bad Request: a header occurs twice, is no fence, or names another resource.
//   - 503 Service Unavailable: the guard failed.
//
// next runs inside of the guard: with [Memory] no two writes to one resource run at the
// same time. If the guard fails after next, for example in the commit of a transaction,
// Handler closes the connection, so that the client does not trust the answer of next.
// The headers do not authenticate the sender: authenticate requests before Handler.
func Handler(g Guarder, resource func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard := g.Guard
		isRead := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		if isRead {
			readers, can := g.(ReaderGuarder)
			if !can || r.Header.Values(HeaderToken) == nil && r.Header.Values(HeaderResource) == nil {
				next.ServeHTTP(w, r)
				return
			}
			guard = readers.GuardReader
		}
		name, fence, refusal := parseHeaders(r.Header)
		if refusal == nil && resource != nil && resource(r) != name {
			if isRead { // the sender holds a lock on another resource
				next.ServeHTTP(w, r)
				return
			}
			refusal = &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s is %.40q, and the request writes to another resource", HeaderResource, name)}
		}
		if refusal != nil {
			refusal.write(w)
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

func parseHeaders(h http.Header) (resource string, fence uint64, refusal *problem) {
	tokens, resources := h.Values(HeaderToken), h.Values(HeaderResource)
	switch {
	case len(tokens) == 0 || len(resources) == 0:
		return "", 0, &problem{Status: http.StatusPreconditionRequired, Detail: "needs the headers " + HeaderToken + " and " + HeaderResource}
	case len(tokens) > 1 || len(resources) > 1:
		return "", 0, &problem{Status: http.StatusBadRequest, Detail: "a header occurs twice"}
	}
	fence, err := strconv.ParseUint(tokens[0], 10, 64)
	if err != nil {
		return "", 0, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s is not a number: %.40q", HeaderToken, tokens[0])}
	}
	if err := validate(resources[0], fence); err != nil {
		return "", 0, problemOf(err)
	}
	return resources[0], fence, nil
}

// Transport is an http.RoundTripper that sends the fence of the lease in the request's
// context. The context that Do passes has one. The resource is the name of the lock. A
// request without such a lease, or with these headers already, stays unchanged.
type Transport struct {
	Base http.RoundTripper // default: http.DefaultTransport

	// Resource returns the name of the lock that guards what a request writes to, for
	// example from its path. Required. "" leaves the request unchanged.
	Resource func(*http.Request) string
}

// RoundTrip implements http.RoundTripper. A refusal by [Handler] is an ordinary response,
// see [ResponseError]. Without a Resource the error matches [pawl.ErrInvalid], and
// nothing is sent.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Resource == nil {
		if r.Body != nil {
			_ = r.Body.Close() // as every RoundTripper must
		}
		return nil, &pawl.InvalidError{Argument: "Transport", Problem: "has no Resource", Allowed: "a function that names the lock"}
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

// problemType identifies a problem of [Handler] for [ResponseError], and leads people to
// its documentation.
const problemType = "https://github.com/pawl-go/pawl/blob/main/docs/fencing.md#http"

// A problem is the body of an answer, as in RFC 9457.
type problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Resource string `json:"resource,omitempty"`
	Fence    uint64 `json:"fence,omitempty"`
	Highest  uint64 `json:"highest,omitempty"`
}

func problemOf(err error) *problem {
	detail := strings.TrimPrefix(err.Error(), "pawl: ")
	if stale, ok := errors.AsType[*StaleError](err); ok {
		return &problem{Status: http.StatusConflict, Detail: detail, Resource: stale.Resource, Fence: stale.Fence, Highest: stale.Highest}
	}
	if errors.Is(err, pawl.ErrInvalid) {
		return &problem{Status: http.StatusBadRequest, Detail: detail}
	}
	// The client must not see the cause.
	return &problem{Status: http.StatusServiceUnavailable, Detail: "the fence cannot be checked"}
}

func (p *problem) write(w http.ResponseWriter) {
	p.Type, p.Title = problemType, http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// ResponseError returns the error for which [Handler] refused a request, or nil for any
// other response:
//
//   - 409: a [*StaleError].
//   - 400 and 428: a [*pawl.InvalidError]. A header is missing, is no fence, or names
//     another resource.
//   - 503: a [*pawl.BackendError]. The service cannot check the fence now.
//
// It reads the body of such a response. The caller still has to close the body.
func ResponseError(r *http.Response) error {
	if r == nil {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // a header that cannot be parsed has no type
	if kind != "application/problem+json" {
		return nil
	}
	switch r.StatusCode {
	case http.StatusConflict, http.StatusBadRequest, http.StatusPreconditionRequired, http.StatusServiceUnavailable:
	default:
		return nil
	}
	var p problem
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16)).Decode(&p); err != nil || p.Type != problemType {
		return nil //nolint:nilerr // the answer is not from Handler
	}
	switch r.StatusCode {
	case http.StatusConflict:
		return &StaleError{p.Resource, p.Fence, p.Highest}
	case http.StatusServiceUnavailable:
		return backendError("the service", "check the fence for the request", "", errors.New(p.Detail))
	}
	return &pawl.InvalidError{
		Argument: "request", Problem: "was refused: " + p.Detail,
		Allowed: "one " + HeaderToken + " and one " + HeaderResource + ", of the lease on the resource",
	}
}
