// Package engine has what the client side of every backend needs: opening and registering
// (open.go, tls.go), parameters of URLs, failures, findings of a doctor, signals as text,
// the client's claims that wait or hold (claims.go), polling where the server pushes
// nothing (poll.go), subscriptions that are renewed (resubscribe.go), the lower bound of
// a server's clock (serverclock.go), checks of leases (leases.go), and the columns of a
// table for people.
package engine
