package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// driverError turns an error of etcd's client into an error of this driver.
func (s *store) driverError(ctx context.Context, err error) error {
	ended := ctx.Err()
	switch {
	case errors.Is(ended, context.Canceled):
		return ended
	case s.life.Err() != nil:
		return driver.ErrClosed
	case ended != nil:
		return s.unanswered(ended, err)
	}
	return engine.Failure(err, s.location(), "", advice)
}

// unanswered returns the error after the end of the caller's ctx. It names the servers
// that did not answer, or wraps the last error.
func (s *store) unanswered(ended, err error) error {
	failure := &driver.Error{Backend: s.location(), Hint: "check the servers and the network"}
	switch last := status.Convert(err); {
	case err != nil && !errors.Is(err, context.DeadlineExceeded) && last.Code() != codes.DeadlineExceeded:
		failure.Err = fmt.Errorf("%w (%w)", ended, err)
		failure.Hint, _ = advice(err)
	case s.tls.lastError() != nil:
		failure.Err = fmt.Errorf("%w: no server can be reached at %s; the last TLS handshake: %w", ended, s.endpoints(), s.tls.lastError())
		failure.Hint, _ = advice(s.tls.lastError())
	case s.client == nil, s.client.ActiveConnection().GetState() != connectivity.Ready:
		failure.Err = fmt.Errorf("%w: no server can be reached at %s", ended, s.endpoints())
	default:
		failure.Err = fmt.Errorf("%w: no answer from %s", ended, s.endpoints())
		failure.Hint = "a majority of the members has to be up, and connected: etcdctl endpoint status"
	}
	return failure
}

// location returns the endpoints, and the prefix in the form of a URL, for errors.
func (s *store) location() string {
	if s.prefix == "" || s.prefix == defaultPrefix {
		return "etcd " + s.servers
	}
	return "etcd " + s.servers + "/" + s.prefix
}

// endpoints lists the endpoints that the client tries one after the other.
func (s *store) endpoints() string {
	if s.client == nil {
		return strings.ReplaceAll(s.servers, ",", ", ") // openError has set servers to the endpoints
	}
	return strings.ReplaceAll(hosts(s.client.Endpoints()), ",", ", ")
}

// advice returns what the operator can do about an error, and whether a retry is useless.
func advice(err error) (hint string, permanent bool) {
	switch {
	case isAny(err, rpctypes.ErrAuthFailed):
		return "check the user and the password", true
	case isAny(err, rpctypes.ErrUserEmpty):
		return "the cluster requires a user: put USER:PASSWORD@ before the host", true
	case isAny(err, rpctypes.ErrAuthNotEnabled):
		return "the cluster has no users: leave out the user and the password", true
	case isAny(err, rpctypes.ErrPermissionDenied):
		return "give the user's role readwrite on all keys with the prefix: etcdctl role grant-permission ROLE readwrite --prefix PREFIX//", true
	case isAny(err, rpctypes.ErrNoSpace):
		return "the database is full: compact, defragment, then etcdctl alarm disarm", false
	case isTooLarge(err):
		return "too many claims hold or wait for one name, or --max-request-bytes is set too low", true
	case isAny(err, rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail):
		return "a majority of the members has to be up, and connected: etcdctl endpoint status", false
	case isAny(err, rpctypes.ErrGRPCNotSupportedForLearner):
		return "the endpoints are learners: name a voting member", false
	case isAny(err, rpctypes.ErrCorrupt):
		return "etcd has raised the alarm CORRUPT: see etcdctl alarm list", false
	}
	if hint := engine.CertificateHint(err); hint != "" {
		return hint, false
	}
	switch text := err.Error(); {
	case strings.Contains(text, "TLS handshake"):
		return "the servers may not use TLS: begin the URL with etcd, not etcds", false
	case strings.Contains(text, "tls: "), strings.Contains(text, "x509: "):
		return "check ca_cert, client_cert and client_key in the URL, and the servers' certificates", false
	case strings.Contains(text, "reading server preface"):
		return "the servers may require TLS: begin the URL with etcds", false
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return "check the servers and the network", false
	case codes.Unauthenticated, codes.PermissionDenied:
		return "check the user and its rights", true
	default:
		return "", false
	}
}

// isTooLarge reports whether a request was larger than the server's or the client's
// limit.
func isTooLarge(err error) bool {
	return isAny(err, rpctypes.ErrRequestTooLarge) ||
		status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "message larger than max")
}

func isAny(err error, targets ...error) bool {
	if err == nil {
		return false
	}
	text := rpctypes.ErrorDesc(err)
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) || text == rpctypes.ErrorDesc(t) })
}
