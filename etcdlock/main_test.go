package etcdlock_test

import (
	"flag"
	"os"
	"testing"
)

// Tests wait for leases of seconds to end most of the time, so more run at once than
// there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
