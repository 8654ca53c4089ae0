package natslock

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

var (
	errGone     = errors.New("a stored message is missing: the bucket lost it, or its leader is behind")
	errNoAnswer = errors.New("no server answers")
	errReplaced = errors.New("the write was replaced before the client knew whether it counts")
)

// Codes of JetStream's errors for which nats.go has no names.
const (
	codeAccountFull  = 10002
	codeNoPeers      = 10005
	codeNotAvailable = 10008
	codeNoResources  = 10023
	codeNoMemory     = 10028
	codeMaxBytes     = 10077
	codeNoReplicas   = 10074
	codeNoStorage    = 10047
	codeLeaderless   = 10009
	codeTooBig       = 10054
	codeNoMessageTTL = 10166
)

func (s *store) location() string {
	location := "nats " + s.options.Location + "/" + s.options.Bucket
	if s.options.Domain != "" {
		location += " domain=" + s.options.Domain
	}
	return location
}

func codeOf(err error) jetstream.ErrorCode {
	if e, ok := errors.AsType[*jetstream.APIError](err); ok {
		return e.ErrorCode
	}
	if e, ok := errors.AsType[jetstream.JetStreamError](err); ok && e.APIError() != nil {
		return e.APIError().ErrorCode
	}
	return 0
}

func isWrongSequence(err error) bool {
	code := codeOf(err)
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// isWriteUnderWay reports whether another write of the same key is under way. A leader
// that was cut off returns this error until it detects that.
func isWriteUnderWay(err error) bool {
	return codeOf(err) == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// isDisconnected reports whether the connection was lost, and nats.go is replacing it.
func isDisconnected(err error) bool {
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded)
}

// lacksServers reports whether there are fewer servers than the bucket needs for its
// replicas.
func lacksServers(err error) bool {
	code := codeOf(err)
	return code == codeNoPeers || code == codeNoReplicas
}

// isTransient reports whether the cluster may be electing a leader.
func isTransient(err error) bool {
	code := codeOf(err)
	return code == codeNotAvailable || code == codeLeaderless || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, errNotCreated)
}

// driverError turns an error, even a timeout, into a driver.Error. It returns a
// CorruptError, and context.Canceled, unchanged.
func (s *store) driverError(err error) error {
	if _, corrupt := errors.AsType[*locktable.CorruptError](err); corrupt || errors.Is(err, context.Canceled) {
		return err
	}
	return engine.Failure(err, s.location(), "", advice)
}

// advice returns what the operator can do about an error, and whether a retry is useless
// before that.
func advice(err error) (hint string, permanent bool) {
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	network, isNetwork := errors.AsType[net.Error](err)
	switch code := codeOf(err); {
	case errors.Is(err, nats.ErrPermissionViolation):
		return "give the user the rights that https://github.com/pawl-go/pawl/blob/main/docs/backends/nats.md lists for NATS; if only the right to make a bucket is missing, make the bucket beforehand", true
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return "check user and password, or the credentials", true
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return "make the bucket: nats kv add --history=1 --ttl=0", true
	case code == jetstream.JSErrCodeJetStreamNotEnabled, code == jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return "start nats-server with JetStream (-js), and enable it for the account", true
	case code == codeTooBig:
		return "too many claims hold or wait for one name: raise the bucket's max_msg_size, to -1 for no limit", true
	case errors.Is(err, nats.ErrMaxPayload):
		return "too many claims hold or wait for one name: raise max_payload", true
	case code == codeAccountFull, code == codeNoMemory, code == codeNoStorage, code == codeMaxBytes, code == codeNoResources:
		return "give JetStream, the account or the bucket more room", false
	case errors.Is(err, nats.ErrNoResponders):
		return "check that JetStream is on, and that the bucket has a leader", false
	case errors.Is(err, nats.ErrNoServers), isDisconnected(err):
		return "check the server and the network", false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errNotCreated):
		return "check the server and the network, and that a majority of a cluster is up", false
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the server has no TLS: leave out tls=true, or give it a certificate", true
	case errors.Is(err, nats.ErrSecureConnRequired):
		return "the server requires TLS: add tls=true", true
	case notTLS:
		return "the server does not begin a connection with TLS (handshake_first), as nats+tls:// requires: begin the URL with nats://, and add tls=true if the server has TLS", true
	case untrusted:
		return "check ca_cert and server_name in the URL, and the server's certificate", false
	case isDNS && dns.IsNotFound:
		return "the host is not known: check its name", false
	case isNetwork && network.Timeout():
		return "check the server and the network; a server that begins with TLS (handshake_first) needs nats+tls://", false
	case isNetwork, errors.Is(err, io.EOF):
		return "check the server and the network", false
	}
	return "", false
}
