package postgreslock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/postgreslock"
)

// The driver abandons a statement that gets no answer, and sends no cancel request for
// it, on any of its connections. A cancel request can crash PgBouncer 1.18.
func TestTheDriverSendsNoCancelRequests(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	_ = openDriver(t, url) // creates the tables
	for statement, hosts := range map[string]string{
		"SELECT pg_backend_pid()": "", "SELECT version()": "", "LISTEN ": "", "show transaction_read_only": ",127.0.0.1:1",
	} {
		t.Run(strings.TrimSpace(statement), func(t *testing.T) {
			t.Parallel()
			proxy := servertest.StartProxy(t, server.Addr)
			cancelRequest := proxy.Silence("\x04\xd2\x16\x2e") // the protocol's CancelRequest
			sent, resume := proxy.HoldFrom(statement)
			defer resume()
			callerCtx, cancel := context.WithCancel(ctx)
			defer cancel()
			opened, proxyURL := make(chan *postgreslock.Driver, 1), "postgres://postgres@"+proxy.Addr+hosts+"/"+name
			var d *postgreslock.Driver
			if statement == "LISTEN " { // the listener sends it after Open
				d = open(t, proxyURL)
				gets(t, d, mutex("held"))
			} else {
				go func() {
					d, _ := asDriver(postgreslock.Open(callerCtx, proxyURL))
					opened <- d
				}()
			}
			<-sent
			if cancel(); d == nil {
				d = <-opened
			}
			if d != nil {
				_ = d.Close()
			}
			select {
			case <-cancelRequest:
				t.Error("the driver sent a cancel request")
			case <-time.After(300 * time.Millisecond): // a cancel request would arrive by then
			}
		})
	}
}
