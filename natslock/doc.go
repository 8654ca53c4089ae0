// Package natslock keeps locks in a key-value bucket of NATS JetStream: for programs that
// have a NATS server, or a cluster of three, already.
//
//	d, err := natslock.Open(ctx, "nats://pawl:secret@n1,n2,n3/locks?replicas=3")
//
// Importing it also makes pawl.Open and the pawl command understand its URLs.
//
// # What can a URL say?
//
//	nats://host:4222                   the bucket is pawl, and made if it is missing
//	nats://user:password@a,b,c/locks   a cluster, and the bucket locks
//	nats://token@host                  a token
//	nats+tls://host                    TLS from the start; nats:// upgrades if the server wants it
//
// What is special in a user or a password is percent-encoded. Parameters:
//
//	replicas=3               of a bucket that is made: 1 to 5
//	storage=memory           of a bucket that is made: file or memory
//	create=false             the bucket has to be there, see Options.MustExist
//	retention=24h            how long a fence is remembered, see Options.Retention
//	push=false               no signals, see Options.NoPush
//	domain=hub               the JetStream domain of the bucket
//	inbox=_INBOX_app         begins the subjects of answers and signals; default: _INBOX
//
//	creds=FILE               credentials of an operator's user: a JWT and its seed
//	nkey=FILE                the seed of an nkey
//	tls=true                 TLS has to be
//	ca_cert=FILE             trust only the authorities in this PEM file
//	client_cert=FILE         our certificate, and
//	client_key=FILE          its key
//	server_name=NAME         in the server's certificate, if it is not the host's
//	skip_verify=true         trust any certificate
//
// # What does the server need?
//
// nats-server 2.11 or later with JetStream. A bucket of three replicas survives the loss
// of a server; one of a single replica is as safe as the disk of that server, which by
// default syncs every two minutes: what was acknowledged before the machine, not the
// process, fails can be lost, also by all replicas if their machines fail together. Then
// what was granted may be granted again, with a greater fence. sync_interval: always
// in the server's configuration closes that. The driver's Diagnose (`pawl doctor`) looks
// at the bucket.
//
// # Whose clock decides?
//
// That of the server that leads the bucket, which stamps each message. NATS can compare
// the sequence of a key, but not the time, so each value is stored with the window in
// which it had to arrive, and with the value that it replaced; a stamp outside of the
// window makes it void. So whatever arrives late, or was computed from a wrong idea of
// the server's time, changes nothing; package stamped has the argument.
//
// An acknowledgement does not have the stamp. The leader tells it, before it
// acknowledges, on a subject of its own, _PAWL.BUCKET.KEY, to which the writer listens
// meanwhile. Where that does not come (a bucket that others made, a user that may not
// subscribe to it, a message that was lost) the writer reads its value back before it is
// told that it was granted something.
//
// After a change of the leader another machine's clock stamps. Writers find that out from
// their first stamp, and compute anew. If the new leader's clock is behind, leases last
// longer by the difference. If it is ahead they end sooner by it, less the 50 ms, or four
// round trips, that everything lasts longer anyway. So nobody enters early as long as the
// servers' clocks agree to about 50 ms, as NTP keeps them; further apart, a fence tells
// the two holders apart. The same holds for a clock that is set.
//
// # What does a lock cost?
//
// Acquire and Release are one request each for a name that the process has seen in the
// last 250 ms, two for another, and a release is three if somebody has joined the queue
// since. In a bucket that others made each is one more. A name that is passed on is
// announced to the next holder by a plain message with the fence in it. A name is a
// message of some 300 bytes, which goes a day after its last lease ended. A driver has
// one connection, which is the caller's own with New, and one subscription.
//
// A claim takes up to four round trips if others want the name, and has 3 s at most for
// one attempt. So where an answer takes 700 ms and more, set pawl.Options.RequestTimeout
// to some ten of them, and the TTL to sixty.
//
// # What happens when the bucket, or the leader, goes?
//
// A bucket that lost data counts on from where it is then, so that a sequence which a
// client remembers may become that of another value: a node of the cluster that had it in
// its memory restarts, or an operator restores a backup. So nobody relies on what it saw
// more than 250 ms ago. A backup is restored when no client runs; or with create=false,
// and no sooner than a second after the bucket was deleted.
//
// A bucket that was deleted is made anew by whoever needs it next, and holders hear from
// their next renewal that they lost. While a cluster elects a leader, requests wait. A
// leader that was cut off may answer reads from before that for some seconds, until it
// knows: then a claim is refused that would be granted, or a renewal is told that its
// lease is lost. It cannot grant anything, for that takes a majority. Nor can it say that
// a claim which was given up is not there, which may be in the log of the next leader: a
// release that finds nothing writes what it found, which takes a majority, too, and then
// the claim cannot count any more.
//
// A server that is alive, but cut off from the others, keeps its connections. A driver
// whose requests it has not answered for 2 s goes to another server, then again after 4 s
// and so on, if the URL or the cluster names more than one; otherwise it connects to the
// same one anew, after 4 s, 8 s and so on. So it also comes back from a right to listen
// to its inbox that was taken away for a while. A connection that was handed over to New
// stays where it is: its owner may call its ForceReconnect.
package natslock
