package mysqltest

import (
	"os"
	"sync"
)

// shared is the server of all tests of a process that do not damage it.
var shared struct {
	sync.Mutex
	server *Server
	err    error
	dir    string
}

// Shared is a server that lives until Stop. Each test makes a database of its own in it.
func Shared(tb TB) *Server {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		if shared.dir, shared.err = os.MkdirTemp(parent(), "pawl-mysql"); shared.err == nil {
			shared.server, shared.err = start(tb, shared.dir, nil)
		}
	}
	if shared.err != nil {
		tb.Fatalf("%v", shared.err)
	}
	return shared.server
}

// Stop ends the shared server, and removes the template of the servers. TestMain calls
// it.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.Kill()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	if dir := made.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
}
