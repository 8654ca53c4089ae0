package engine

import (
	"errors"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// A ConfigError means that a server, a connection to it, or its stored data is unfit for
// locks.
type ConfigError struct {
	Problem, Hint string
	Temporary     bool // the problem may be temporary
}

func (e *ConfigError) Error() string { return e.Problem }

// Failure turns an error of an engine's client into a [*driver.Error]. The hint comes
// from a [ConfigError], from [CertificateHint], or otherwise from advice. Failure returns
// a *driver.Error, and driver.ErrClosed, unchanged.
func Failure(err error, backend string, op driver.Op, advice func(error) (hint string, permanent bool)) error {
	if _, typed := errors.AsType[*driver.Error](err); err == nil || typed || errors.Is(err, driver.ErrClosed) {
		return err
	}
	hint, permanent := CertificateHint(err), false
	if config, ok := errors.AsType[*ConfigError](err); ok {
		hint, permanent = config.Hint, !config.Temporary
	} else if hint == "" {
		hint, permanent = advice(err)
	}
	return &driver.Error{Backend: backend, Op: op, Hint: hint, Permanent: permanent, Err: err}
}

// Hints has a hint for each text that an error may contain. The first match counts.
type Hints []struct {
	Text      string
	Permanent bool // a retry is useless
	Hint      string
}

// Advice returns the hint for an error, and whether a retry is useless.
func (all Hints) Advice(err error) (hint string, permanent bool) {
	text := err.Error()
	for _, h := range all {
		if strings.Contains(text, h.Text) {
			return h.Hint, h.Permanent
		}
	}
	return "", false
}

// CertificateHint returns advice for an error about a certificate that has expired or
// that a server refuses, or "" for any other error. Such an error is not permanent: each
// new connection reads the client's files again, and the server may get new files.
//
// It reads the error's text, because not all clients wrap the error.
func CertificateHint(err error) string {
	mentions := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(err.Error(), part) {
				return true
			}
		}
		return false
	}
	switch {
	case mentions("x509: certificate has expired"):
		return "the server's certificate, or its authority's, has expired: renew it, or set this machine's clock"
	case mentions("remote error: tls: expired certificate"):
		return "the client's certificate has expired: replace its files, and the next connection uses them"
	case mentions("remote error: tls: certificate required", "remote error: tls: bad certificate", "remote error: tls: unknown certificate", "remote error: tls: revoked"):
		return "the server refuses the client's certificate, or requires one: check the client's files, and the authorities that the server trusts"
	}
	return ""
}
