package mongolock

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// The codes of the server's errors: mongo/src/mongo/base/error_codes.yml.
const (
	unauthorized         = 13
	authenticationFailed = 18
	validationFailed     = 121
	noMajorityReads      = 148
)

var hints = engine.Hints{
	{"checking out a connection from connection pool", false, "give locks a client of their own, or a larger maxPoolSize"},
	{"no such command: 'hello'", true, oldHint},
	{"but this version of the Go driver requires", true, oldHint},
	{"auth error", true, "the user or the password is wrong, or belongs to another database: ?authSource=admin"},
	{"Authentication", true, "the user or the password is wrong, or belongs to another database: ?authSource=admin"},
	{"x509:", false, "the server's certificate is not one that this machine trusts for that host"},
	{"does not look like a TLS handshake", true, "the server does not speak TLS on this port: leave out tls=true"},
	{"linearizable", false, "a majority of the members does not answer: look at rs.status()"},
	{"not primary", false, "the replica set is electing, or only one of its members is known: name several in the URL, with replicaSet=NAME"},
	{"connection refused", false, "no server listens there: is it up, and is the port right?"},
	{"no such host", false, "the host is not known"},
	{"server selection", false, "no primary answers: can it be reached, and does it speak TLS if and only if the URL says tls=true?"},
}

const oldHint = "MongoDB 4.4.2 or later is needed"

func advice(err error) (hint string, permanent bool) {
	if _, ok := errors.AsType[*locktable.CorruptError](err); ok {
		return "this name cannot be locked until its document is repaired, or deleted while no client holds it", true
	}
	if e, ok := errors.AsType[mongo.ServerError](err); ok {
		switch {
		case e.HasErrorCode(unauthorized):
			return "the user may not do this: it needs readWrite on the database, see https://github.com/pawl-go/pawl/blob/main/docs/backends/mongodb.md", true
		case e.HasErrorCode(noMajorityReads):
			return majorityHint, true
		case e.HasErrorCode(validationFailed):
			return "the collection has a validator that refuses the entries: remove it (collMod), or use another collection (collection=NAME)", true
		case e.HasErrorCode(authenticationFailed):
			return "the user or the password is wrong, or belongs to another database: ?authSource=admin", true
		}
	}
	return hints.Advice(err)
}
