package postgreslock_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			m := startMute(t, server.Addr, statement)
			brief, cancel := context.WithCancel(ctx)
			defer cancel()
			opened := make(chan *postgreslock.Driver)
			go func() {
				d, _ := concrete(postgreslock.Open(brief, "postgres://postgres@"+m.addr+hosts+"/"+name))
				opened <- d
			}()
			var d *postgreslock.Driver
			if statement == "LISTEN " { // the listener's statement comes after the opening
				d = <-opened
				gets(t, d, mutex("held"))
			}
			eventually(t, statement+" is sent", func() bool { return m.muted.Load() > 0 })
			if cancel(); d == nil {
				d = <-opened
			}
			if d != nil {
				_ = d.Close()
			}
			time.Sleep(300 * time.Millisecond) // a cancel request would arrive by then
			if asked := m.cancels.Load(); asked > 0 {
				t.Errorf("after %s came %d cancel requests", statement, asked)
			}
		})
	}
}

// A mute passes everything on, but no reply after a statement.
type mute struct {
	addr           string
	muted, cancels atomic.Int32
}

func startMute(t *testing.T, to, statement string) *mute {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	m := &mute{addr: l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go m.carry(client, to, statement)
		}
	}()
	return m
}

func (m *mute) carry(client net.Conn, to, statement string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	var silent atomic.Bool
	go func() {
		defer client.Close()
		b := make([]byte, 1<<16)
		for {
			n, err := server.Read(b)
			if err != nil {
				return
			}
			if !silent.Load() {
				_, _ = client.Write(b[:n])
			}
		}
	}()
	b := make([]byte, 1<<16)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if n >= 8 && bytes.Equal(b[4:8], []byte{4, 0xd2, 0x16, 0x2e}) { // the protocol's CancelRequest
			m.cancels.Add(1)
		}
		if strings.Contains(string(b[:n]), statement) && !silent.Swap(true) {
			m.muted.Add(1)
		}
		if _, err := io.Copy(server, bytes.NewReader(b[:n])); err != nil {
			return
		}
	}
}
