package fence

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl"
)

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
		return nil //nolint:nilerr // it is no answer of Handler's
	}
	switch r.StatusCode {
	case http.StatusConflict:
		return &StaleError{p.Resource, p.Fence, p.Highest}
	case http.StatusServiceUnavailable:
		return failed("the service", "check the fence for the request", "", errors.New(p.Detail))
	}
	return &pawl.InvalidError{
		What: "request", Problem: "was refused: " + p.Detail,
		Allowed: HeaderToken + " and " + HeaderResource + ", once each, of the lease on what it writes to",
	}
}
