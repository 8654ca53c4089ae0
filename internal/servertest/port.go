package servertest

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

// FreePort returns a port on which no process listens. The port busOffset above it is
// free, too, because a node of a Redis cluster listens there.
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
		if free(port) && free(port+busOffset) {
			return strconv.Itoa(port)
		}
	}
	tb.Fatalf("no free port from %d on", first)
	return ""
}

// The ranges begin at firstPort, and end before the ports of the cluster buses begin. The
// ports of the buses end before 32768, where Linux begins with outgoing connections. The
// guards are the ports before firstPort.
const (
	firstPort, busOffset     = 10000, 10000
	portsInRange, portRanges = 200, 50
)

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
		if guard, err = listen(firstPort - portRanges + n); err == nil {
			return firstPort + n*portsInRange
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
