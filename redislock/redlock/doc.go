// Package redlock keeps locks in several independent Redis or Valkey servers, a majority
// of which decides. It is quorumlock over redislock. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/redislock/redlock"
//
//	locks, err := pawl.Open(ctx, "redlock://host1,host2,host3", nil)
//
// With rueidis clients that you have already, [New] makes the driver.
//
// What it promises, and when a server that lost its data may come back, is in the
// documentation of quorumlock; what it asks of each server, in that of redislock.
//
// # Which URLs are there?
//
//	redlock://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT],HOST[:PORT][/DB]
//	redlocks://...                                                      the same with TLS
//
// There are 3 hosts or more, and an odd number is best. User, password, database and
// parameters are the same for all of them.
//
// # Which parameters do URLs have?
//
// Most URLs have none. These mean what they mean for redislock, for each server:
//
//	addr=HOST:PORT       a further host
//	db=N                 the database, as /N after the hosts
//	client_name=NAME
//	dial_timeout=5s
//	write_timeout=10s
//	protocol=2
//	ca_cert=FILE         with redlocks:
//	client_cert=FILE     with redlocks:
//	client_key=FILE      with redlocks:
//	server_name=NAME     with redlocks:
//	skip_verify=true     with redlocks:
//	prefix=app:
//	retention=24h
//	push=false
//	wait_replicas=1      of each server, if each has replicas of its own
//	wait_timeout=500ms
//
// # Which servers will do?
//
// They have to be independent: no two of them a master and its replica, or on one
// machine. Two addresses of one server are refused, if the user may call INFO. All
// clients have to name the same servers. A server that is down when the URL is opened, or
// later, is tried again with each step, as long as a majority of them answers. A holder
// whose key somebody deletes hears of it by its next renewal.
package redlock
