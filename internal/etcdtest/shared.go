package etcdtest

import (
	"os"
	"slices"
	"sync"
)

// shared is the server of all tests of a process that leave it as it is.
var shared struct {
	sync.Mutex
	cluster *Cluster
	ends    []func()
}

// Shared returns a server of one member that lives until Stop. Each test has a prefix of
// its own there.
func Shared(tb TB) *Cluster {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		shared.cluster = Start(&longLived{tb}, 1)
	}
	return shared.cluster
}

// Stop ends the shared server. TestMain calls it.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	for _, end := range slices.Backward(shared.ends) {
		end()
	}
	shared.cluster, shared.ends = nil, nil
}

// longLived is the test that starts the shared server. Its servers and folders last
// until Stop.
type longLived struct{ TB }

func (*longLived) Cleanup(f func()) { shared.ends = append(shared.ends, f) }

func (l *longLived) TempDir() string {
	l.Helper()
	dir, err := os.MkdirTemp("", "pawl-etcd")
	if err != nil {
		l.Fatalf("%v", err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
