package main

import (
	"strings"
	"testing"
)

// The command of each term gets the terminal, and between two terms pawl has it.
func TestTerminalBelongsToTheLeadersCommand(t *testing.T) {
	b := newLab(t)
	s := b.shell()
	s.line(`pawl elect x -- sh -c 'echo $$ > group; exec cat'`)
	first := b.group()
	s.awaitForeground("the command is in the foreground", func(g int) bool { return g == first })
	b.start("break", "--yes", "--delay", "0", "x").wantCode(0)
	s.await(`pawl: lost "x" .*: stopping the command`)
	var second int
	eventually(t, "it leads again", func() bool { second = b.group(); return second != first })
	b.wantGone(first)
	s.awaitForeground("the next command is in the foreground", func(g int) bool { return g == second })
	s.line("two")
	s.await("two\r\ntwo\r\n")
	s.key("\x1a")
	s.await(`(?i)stopped`)
	s.line("fg")
	s.awaitForeground("the command is in the foreground again", func(g int) bool { return g == second })

	b.start("break", "--yes", "--delay", "1000", "x").wantCode(0)
	s.await(`pawl: lost "x" .*: stopping the command`)
	b.awaitWaiters("x", 1)
	s.key("\x1a")
	s.await(`(?i)stopped`)
	s.line("fg; echo code $?")
	s.awaitForeground("pawl is in the foreground", func(g int) bool { return g != s.pid && g != second })
	s.key("\x03")
	s.await("code 130\r\n") // after the ^C of the terminal
}

// On a terminal, pawl warns that a handle is a secret, and accepts none from the
// keyboard.
func TestTerminalShowsThatAHandleIsASecret(t *testing.T) {
	b := newLab(t)
	s := b.shell()
	s.line("pawl acquire x; echo code $?")
	if got := s.await(`(?s)\n.*code 0`); !strings.Contains(got, "pawl: warning: the handle is a secret: any program that has it can release the lock; --handle FILE keeps it off the screen") || !strings.Contains(got, handlePrefix) {
		t.Errorf("the terminal shows %q", got)
	}
	s.line("pawl acquire --handle h y; pawl acquire z > h2; chmod 600 h2; pawl release --handle h; pawl release < h2; echo code $?")
	if got := s.await(`(?s)\n.*code [0-9]+`); strings.Contains(got, "pawl: ") || !strings.Contains(got, "code 0") {
		t.Errorf("the terminal shows %q", got)
	}
	s.line("pawl release; echo code $?")
	if got := s.await(`(?s)\n.*code 64`); !strings.Contains(got, "pawl: standard input is a terminal; pipe the handle into it, or use --handle FILE; see") {
		t.Errorf("the terminal shows %q", got)
	}
	s.line("pawl renew --json; echo code $?")
	if got := s.await(`(?s)\n.*code 64`); !strings.Contains(got, "pawl: standard input is a terminal;") || strings.Contains(got, "{") {
		t.Errorf("the terminal shows %q", got)
	}
	s.line("pawl acquire --json j; echo code $?")
	if got := s.await(`(?s)\n.*code 0`); !strings.Contains(got, "pawl: warning: the handle is a secret") || !strings.Contains(got, `{"name":"j","fence":`) {
		t.Errorf("the terminal shows %q", got)
	}
	if e := b.entry("x"); len(e.Holders) != 1 {
		t.Errorf("x: %+v", e)
	}
}

// The bar of bench is for people: it disappears at the end, and only a terminal shows it.
func TestTerminalShowsTheBarOfBench(t *testing.T) {
	s := newLab(t).shell()
	s.line("pawl bench --duration 1 --clients 2; echo code $?")
	s.await(`\[#* *\] +[0-9]+%  [0-9]+ locked`)
	s.await("\r\x1b\\[K")
	s.await(`cycle +[0-9]+`)
	s.await("\ncode 0\r\n")
	s.line("pawl bench --duration 1h")
	s.await(`\[ {40}\] +[0-9]%`)
	s.key("\x03")
	s.await("\r\x1b\\[K")
	s.await(`\$ $`)
	s.line("echo code $?")
	s.await("\ncode 130\r\n")
}
