package postgreslock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/postgreslock"
)

// A statement without an answer is given up, and the server is not asked to cancel it,
// whichever connection it came on: PgBouncer 1.18 can end when it is asked.
func TestNothingAsksTheServerToCancel(t *testing.T) {
	t.Parallel()
	server, url, name := fresh(t)
	_ = openDriver(t, url) // it makes the tables
	for statement, hosts := range map[string]string{
		"SELECT pg_backend_pid()": "", "SELECT version()": "", "LISTEN ": "", "show transaction_read_only": ",127.0.0.1:1",
	} {
		t.Run(strings.TrimSpace(statement), func(t *testing.T) {
			t.Parallel()
			proxy := servertest.StartProxy(t, server.Addr)
			asked := proxy.Silence("\x04\xd2\x16\x2e") // the protocol's CancelRequest
			sent, letGo := proxy.HoldFrom(statement)
			defer letGo()
			brief, cancel := context.WithCancel(ctx)
			defer cancel()
			opened, at := make(chan *postgreslock.Driver, 1), "postgres://postgres@"+proxy.Addr+hosts+"/"+name
			var d *postgreslock.Driver
			if statement == "LISTEN " { // the listener's statement comes after the opening
				d = open(t, at)
				gets(t, d, mutex("held"))
			} else {
				go func() {
					d, _ := asDriver(postgreslock.Open(brief, at))
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
			case <-asked:
				t.Error("the server was asked to cancel it")
			case <-time.After(300 * time.Millisecond): // a cancel request would arrive by then
			}
		})
	}
}
