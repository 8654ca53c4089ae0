package redisscript

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Options are the options of a Driver. redislock and goredislock declare the fields
// again, with a comment for each, so that the documentation of both packages shows them.
type Options struct {
	Prefix       string
	Retention    time.Duration
	NoPush       bool
	WaitReplicas int
	WaitTimeout  time.Duration
}

const defaultPrefix = "pawl:"

// Validate fills in the defaults, and returns an error for invalid options.
func (o *Options) Validate() error {
	o.Prefix = cmp.Or(o.Prefix, defaultPrefix)
	o.Retention = cmp.Or(o.Retention, 24*time.Hour)
	if strings.ContainsAny(o.Prefix, "{}") {
		return &driver.InvalidError{Argument: "prefix", Problem: "has a brace, and a cluster would see a hash tag in it", Allowed: "no braces"}
	}
	if o.Retention < time.Minute || o.Retention > driver.MaxTTL {
		return &driver.InvalidError{Argument: "retention", Problem: "is " + o.Retention.String(), Allowed: "1m to 720h"}
	}
	if o.WaitReplicas < 0 || o.WaitReplicas > maxReplicas {
		return &driver.InvalidError{Argument: "replicas to wait for", Problem: fmt.Sprint("are ", o.WaitReplicas), Allowed: fmt.Sprint("0 to ", maxReplicas)}
	}
	o.WaitTimeout = cmp.Or(o.WaitTimeout, 500*time.Millisecond)
	if o.WaitTimeout < time.Millisecond || o.WaitTimeout > maxReplicaTimeout {
		return &driver.InvalidError{Argument: "time to wait for replicas", Problem: "is " + o.WaitTimeout.String(), Allowed: "1ms to " + maxReplicaTimeout.String()}
	}
	return nil
}

// DescribeDatabase returns the description of a database, because two databases of one
// server are two backends.
func DescribeDatabase(server string, database int) string {
	if database == 0 {
		return server
	}
	return server + "/" + strconv.Itoa(database)
}

type laterKey struct{}

// ConnectLater returns a ctx with which redislock opens one server without a connection.
// redlock uses it.
func ConnectLater(ctx context.Context) context.Context {
	return context.WithValue(ctx, laterKey{}, true)
}

// ConnectsLater reports whether ConnectLater made ctx.
func ConnectsLater(ctx context.Context) bool { return ctx.Value(laterKey{}) != nil }
