package mongolock

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/testservers"
)

var asDriver = servertest.As[*lockDriver] // converts the driver of New or Open to its concrete type

var ctx = context.Background()

// A testServer is a FerretDB behind a proxy that serialises requests, or the real server
// of PAWL_TEST_MONGODB_URL, on which each test has its own databases.
type testServer struct {
	url  string // without a database
	addr string

	*servertest.Process // nil for a real server
}

var (
	isRefused       = servertest.Waits
	within          = servertest.Within
	noError         = basictest.NoError
	skipIfShort     = basictest.SkipIfShort
	mutex           = servertest.Mutex
	lease           = servertest.Lease
	wantDriverError = servertest.WantDriverError
	finds           = servertest.Finds
)

// realURL returns the URL of the real server, or "".
func realURL() string { return os.Getenv("PAWL_TEST_MONGODB_URL") }

// startServer returns the real server, or starts a FerretDB.
func startServer(t testing.TB) *testServer {
	t.Helper()
	if realURL() != "" {
		u, err := url.Parse(realURL())
		if err != nil {
			t.Fatal("PAWL_TEST_MONGODB_URL cannot be parsed")
		}
		return &testServer{url: realURL(), addr: u.Host}
	}
	return startFerretDB(t)
}

func startFerretDB(t testing.TB) *testServer {
	t.Helper()
	skipIfShort(t, "it builds FerretDB")
	s := &testServer{addr: "127.0.0.1:" + servertest.FreePort(t), Process: &servertest.Process{TB: t, Dir: t.TempDir()}}
	s.url = "mongodb://" + s.addr
	s.run()
	t.Cleanup(s.Kill)
	return s
}

// run starts the process, for the first time or after Kill.
func (s *testServer) run() {
	s.TB.Helper()
	cmd := exec.Command(testservers.Build(s.TB, "ferretdb"), "-data", s.Dir, "-listen", s.addr)
	if _, err := cmd.StdinPipe(); err != nil { // the server ends when this process closes the pipe
		s.TB.Fatalf("%v", err)
	}
	s.Launch(cmd, nil)
	s.Await(func() error {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

var databases atomic.Int64

// newDatabase returns a name for a new database.
func newDatabase() string {
	return fmt.Sprintf("pawl_test_%d_%d_%d", os.Getpid(), time.Now().UnixMilli()%1e6, databases.Add(1))
}

// databaseURL returns the URL of a database, on the server or on a proxy at addr.
func (s *testServer) databaseURL(addr, db string) string {
	base, query, _ := strings.Cut(s.url, "?")
	base = strings.TrimSuffix(strings.Replace(base, s.addr, addr, 1), "/")
	if addr != s.addr {
		query += "&directConnection=true"
	}
	return base + "/" + db + "?appName=pawl-test&" + strings.TrimPrefix(query, "&")
}

// open opens a driver that is closed when the test ends.
func open(t testing.TB, url string) *lockDriver {
	t.Helper()
	d, err := asDriver(Open(ctx, url))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}
