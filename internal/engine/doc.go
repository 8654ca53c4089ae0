// Package engine has what the client side of every backend needs: opening and registering
// (open.go, tls.go), failures, findings of a doctor, a signal as text, the claims that
// this client waits for or holds (claims.go), when to look where nothing is pushed
// (poll.go), subscriptions that are kept up (resubscribe.go), the lower bound of a
// server's clock (serverclock.go), and the columns of a table that people read.
package engine
