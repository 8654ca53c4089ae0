package natstest

import (
	"os"
	"slices"
	"sync"
)

// shared is the server of all tests of a process that leave it as it is.
var shared struct {
	sync.Mutex
	server *Server
	ends   []func()
}

// Shared returns a server with JetStream that lives until Stop. Each test has a bucket of
// its own there.
func Shared(tb TB) *Server {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		shared.server = Start(&longLived{tb}, "")
	}
	return shared.server
}

// Stop ends the shared server. TestMain calls it.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	for _, end := range slices.Backward(shared.ends) {
		end()
	}
	shared.server, shared.ends = nil, nil
}

// longLived is the test that starts the shared server. Its servers and folders last
// until Stop.
type longLived struct{ TB }

func (*longLived) Cleanup(f func()) { shared.ends = append(shared.ends, f) }

func (l *longLived) TempDir() string {
	l.Helper()
	dir, err := os.MkdirTemp("", "pawl-nats")
	if err != nil {
		l.Fatalf("%v", err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
