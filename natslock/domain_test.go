package natslock_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// hubAndLeaf starts two connected servers with different JetStream domains.
func hubAndLeaf(t *testing.T) (hub, leaf *natstest.Server) {
	t.Helper()
	port := servertest.FreePort(t)
	startDomain := func(name, leafnodes string) *natstest.Server {
		return natstest.Start(t, fmt.Sprintf("%s { domain: %s, store_dir: %q }\nserver_name: %s\nleafnodes { %s }",
			natstest.OwnJetStream, name, t.TempDir(), name, leafnodes))
	}
	hub = startDomain("hub", fmt.Sprintf("listen: %q", "127.0.0.1:"+port))
	leaf = startDomain("leaf", fmt.Sprintf("remotes: [{ url: %q }]", "nats://127.0.0.1:"+port))
	return hub, leaf
}

// A client at the leaf and one at the hub share the hub's bucket. They do not use a
// bucket of the same name at the leaf.
func TestALeafUsesTheBucketOfTheHubsDomain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Alone", "BesideABucketOfTheLeaf"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, leaf := hubAndLeaf(t)
			if name != "Alone" {
				gets(t, openDriver(t, "nats://"+leaf.Addr), mutex("of the leaf"))
			}
			near := openDriver(t, "nats://"+hub.Addr)
			d := openDriver(t, "nats://"+leaf.Addr+"?domain=hub")
			for i := range 3 {
				c, next := mutex(fmt.Sprint("n", i)), mutex(fmt.Sprint("n", i))
				gets(t, d, c)
				isRefused(t, near, next)
				renews(t, d, c)
				releases(t, d, c)
				gets(t, near, next)
				isRefused(t, d, c)
			}
			gets(t, openDriver(t, "nats://"+hub.Addr+"?domain=hub"), mutex("of the hub"))
			if name == "Alone" {
				return
			}
			_, js := connect(t, leaf)
			if n := bucketInfo(t, js).State.NumSubjects; n != 1 {
				t.Errorf("the leaf's bucket has %d names, want 1", n)
			}
		})
	}
}
