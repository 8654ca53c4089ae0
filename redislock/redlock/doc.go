// Package redlock keeps locks in several independent Redis or Valkey servers. A majority
// of them decides. It is quorumlock over redislock. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/redislock/redlock"
//
//	locks, err := pawl.Open(ctx, "redlock://host1,host2,host3", nil)
//
// With rueidis clients of your own, [New] makes the driver.
//
// The documentation of quorumlock says what is guaranteed, and when a server that lost
// its data may return. The documentation of redislock says what each server needs.
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
// Most URLs have no parameters. These mean the same as for redislock, for each server:
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
// # Which servers are suitable?
//
// The servers have to be independent: no two of them may be a master and its replica, or
// on one machine. Pawl refuses two addresses of one server, if the user may call INFO.
// All clients have to name the same servers. If a server is down at the opening, or
// later, each step tries it again, while a majority answers. If another client deletes
// the key of a lock, the holder detects that with its next renewal.
//
// # What can its driver do?
//
// It is a driver of quorumlock, whose package comment lists its abilities.
package redlock
