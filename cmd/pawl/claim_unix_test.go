//go:build unix

package main

import (
	"net"
	"regexp"
	"strings"
	"testing"

	listed "github.com/pawl-go/pawl/internal/backends"
)

// hungServer returns the address of a server that accepts connections but never answers.
func hungServer(t *testing.T) (addr string) {
	t.Helper()
	l := mustGet(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// The message, perhaps in a mail of cron, must name the server and what to check.
func TestNoWaitNamesTheServerThatDidNotAnswer(t *testing.T) {
	for _, backend := range listed.All {
		scheme, at, hasServer := strings.Cut(backend.URL, "://")
		if !hasServer {
			continue // it has no server
		}
		t.Run(scheme, func(t *testing.T) {
			b := newLab(t)
			b.env = []string{shortTimeoutsVariable + "=1"}
			addr := hungServer(t)
			b.url = scheme + "://joe:hunter2@" + addr
			if _, path, _ := strings.Cut(at, "/"); path != "" {
				b.url += "/x"
			}
			switch scheme {
			case "redlock":
				b.url += "," + hungServer(t) + "," + hungServer(t)
			case "postgres":
				b.url += "?sslmode=disable"
			}
			p := b.start("run", "-n", "x", "--", "touch", "ran")
			p.wantCode(exitUnavailable)
			got := p.stderr.String()
			hinted := regexp.MustCompile(`\((.*check the|.*can it be reached|.*nodes failed)`).MatchString(got)
			if !strings.Contains(got, addr) || !hinted || strings.Contains(got, "hunter2") {
				t.Errorf("it printed %q", got)
			}
			t.Log(got)
		})
	}
}
