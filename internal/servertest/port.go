package servertest

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

// FreePort returns a port on which no process listens. The port 10000 above it is free,
// too, because a node of a cluster listens there.
//
// Tests start many servers at once, some in other processes. If a server got a port that
// another one is about to take, it would die, and its test would talk to the other one.
// So FreePort does not ask the system for any free port: each process takes the ports of
// a range of its own, one after the other, and outgoing connections do not use that
// range.
func FreePort(tb TB) string {
	tb.Helper()
	first := portRange()
	if guard == nil {
		tb.Fatalf("all ranges of ports are taken by other tests")
	}
	for range portsInRange {
		port := first + int(ports.Add(1)%portsInRange)
		if free(port) && free(port+10000) {
			return strconv.Itoa(port)
		}
	}
	tb.Fatalf("no free port from %d on", first)
	return ""
}

const portsInRange, portRanges = 200, 60

var (
	ports atomic.Uint64 // given so far
	guard net.Listener  // says that the range is ours, for as long as the process lives
)

// portRange is the first port of our range, 0 if all ranges are taken. A process owns a
// range as long as it listens on its guard.
var portRange = sync.OnceValue(func() int {
	for i := range portRanges {
		n := (os.Getpid() + i) % portRanges
		var err error
		if guard, err = listen(10000 - portRanges + n); err == nil {
			return 10000 + n*portsInRange
		}
	}
	return 0
})

func listen(port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

func free(port int) bool {
	l, err := listen(port)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
