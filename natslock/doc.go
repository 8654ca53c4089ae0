// Package natslock keeps locks in a key-value bucket of NATS JetStream. It is for
// programs that already have a NATS server, or a cluster of three.
//
//	d, err := natslock.Open(ctx, "nats://pawl:secret@n1,n2,n3/locks?replicas=3")
//
// Importing it registers its URLs for pawl.Open.
//
// # Which URLs are there?
//
//	nats://host:4222                   the bucket pawl, created if it is missing
//	nats://user:password@a,b,c/locks   a cluster, and the bucket locks
//	nats://token@host                  a token
//	nats+tls://host                    TLS from the start; nats:// upgrades if needed
//
// User and password are percent-encoded. Parameters:
//
//	replicas=3               for a bucket that the driver creates: 1 to 5
//	storage=memory           for a bucket that the driver creates: file or memory
//	create=false             the bucket must exist, see Options.MustExist
//	retention=24h            how long a fence is remembered, see Options.Retention
//	push=false               no signals, see Options.NoPush
//	domain=hub               the JetStream domain of the bucket
//	inbox=_INBOX_app         begins the subjects of answers and signals; default: _INBOX
//
//	creds=FILE               credentials of an operator's user: a JWT and its seed
//	nkey=FILE                the seed of an nkey
//	tls=true                 require TLS
//	ca_cert=FILE             trust only the authorities in this PEM file
//	client_cert=FILE         the client's certificate, and
//	client_key=FILE          its key
//	server_name=NAME         the name in the server's certificate; default: the host
//	skip_verify=true         trust any certificate
//
// Each new connection reads these files again, except nkey.
//
// # What does the server need?
//
// The server needs nats-server 2.11 or later with JetStream. A bucket with three replicas
// survives the loss of a server. By default, servers sync their disks every two minutes.
// If the machines of all replicas fail together, acknowledged writes can be lost, and a
// held name granted again, with a greater fence. sync_interval: always in the servers'
// configuration prevents this. The driver's Diagnose (`pawl doctor`) examines the bucket.
//
// # Whose clock decides?
//
// The clock of the server that leads the bucket decides: it stamps each message. NATS can
// compare the sequence of a key, but not the time. So the driver stores each value with
// the window in which it must arrive, and with the previous value. A stamp outside of the
// window makes the write void, so a write that arrives late changes nothing; package
// stamped says why.
//
// An acknowledgement does not have the stamp. Before the leader acknowledges a write, it
// sends the stamp to the subject _PAWL.BUCKET.KEY, to which the writer has subscribed. If
// no stamp arrives (because another tool created the bucket, the user may not subscribe,
// or a message was lost), the writer reads its value back before it reports a grant.
//
// After a change of the leader another machine's clock stamps the messages. Writers learn
// the new time from their first stamp, and compute again. If the new leader's clock is
// behind, leases last longer by the difference. If it is ahead, leases end sooner by the
// difference. The driver adds 50 ms, or four round trips, to every lease to cover that.
// So no name is granted early while the servers' clocks agree to about 50 ms, as with
// NTP. Otherwise two holders may overlap, and the later one has the greater fence.
//
// # What does a lock cost?
//
// Acquire and Release take one request each for a name that the process has used in the
// last 250 ms, and two for any other name. A release takes three if a claim has joined
// the queue since that use. In a bucket of another tool, each takes one more. A
// name is a message of some 300 bytes, which the server deletes a day after the end of
// the name's last lease. A driver has one connection (the caller's, with New). It
// has a subscription for its signals, one for each name that it watches, and one for each
// write, until the stamp of the write arrives.
//
// A claim takes up to four round trips if other clients want the name, and has 3 s at
// most for one attempt. So if an answer takes 700 ms or more, set
// pawl.Options.RequestTimeout to about ten times that, and the TTL to sixty times.
//
// # What happens when the bucket or the leader is lost?
//
// A bucket loses data if a server that had it in memory restarts, or an operator restores
// a backup. The bucket then repeats sequences, so no client relies on a value that it
// read more than 250 ms ago. Restore a backup while no client runs. Or run the clients
// with create=false, and restore the backup at least a second after the bucket was
// deleted. The next client that needs a deleted bucket creates it again, and holders
// detect the loss with their next renewal.
//
// While a cluster elects a leader, requests wait. A leader that was cut off may answer
// reads with old values for some seconds. A client may then refuse a claim, or report a
// held lease as lost. This leader cannot store a grant, because that requires a majority.
// It may also answer that a claim does not exist, although the next leader's log has it.
// So a release that finds no claim writes the old value again, which makes the claim
// void.
//
// If a server keeps its connection, but does not answer for 2 s, the driver connects to
// another server of the URL or the cluster, then after 4 s to the next, and so on. If
// there is no other server, it connects to the same server again, after 4 s, 8 s and so
// on. A connection of New is not replaced, but its owner may call ForceReconnect.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser; [driver.As] finds them.
package natslock
