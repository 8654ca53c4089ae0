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
// also free, because a node of a Redis cluster listens there.
//
// Tests of several processes start many servers at once. If two servers chose the same
// port, one would die, and its test would talk to the other one. So each process uses its
// own range of ports, one after the other. Outgoing connections do not use these ranges.
func FreePort(tb TB) string {
	tb.Helper()
	first := portRange()
	if guard == nil {
		tb.Fatalf("all ranges of ports are taken by other tests")
	}
	for range portsInRange {
		port := first + int(returnedPorts.Add(1)%portsInRange)
		if isFree(port) && isFree(port+busOffset) {
			return strconv.Itoa(port)
		}
	}
	tb.Fatalf("no free port from %d on", first)
	return ""
}

// The ranges are between firstPort and the ports of the cluster buses, which end before
// 32768, the first port of outgoing connections on Linux. The guards are the ports before
// firstPort.
const (
	firstPort, busOffset     = 10000, 10000
	portsInRange, portRanges = 200, 50
)

var (
	returnedPorts atomic.Uint64 // the number of returned ports
	guard         net.Listener  // reserves the range for this process until it ends
)

// portRange returns the first port of this process's range, or 0 if all ranges are taken.
// A process owns a range while it listens on the range's guard.
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

func isFree(port int) bool {
	l, err := listen(port)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
