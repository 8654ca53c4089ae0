package mongolock

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/leaktest"
)

func TestMain(m *testing.M) {
	// The server handles one request at a time. With more parallel subtests, leases would
	// end before it answers.
	leaktest.SetMaxParallel(24)
	leaktest.Main(m)
}

// Each subtest has its own collection, because large collections slow FerretDB down.
// Subtests with many clients use another server, because they delay other requests.
func TestConformance(t *testing.T) {
	t.Parallel()
	crowdServer, server, db := startServer(t), startServer(t), newDatabase()
	serverOf := func(t testing.TB) *testServer {
		for _, topic := range []string{"Concurrent", "Random", "Names", "List", "Client", "LargeBatch", "Many", "Hundred"} {
			if strings.Contains(t.Name(), topic) {
				return crowdServer
			}
		}
		return server
	}
	collection := func(t testing.TB) string {
		h := fnv.New64()
		_, _ = h.Write([]byte(t.Name()))
		return fmt.Sprintf("pawl%x", h.Sum(nil))
	}
	// The drivers of a server share one client, because connecting takes longer than the
	// tests.
	clients := map[*testServer]*mongo.Client{}
	for _, s := range []*testServer{crowdServer, server} {
		client, err := mongo.Connect(options.Client().ApplyURI(s.databaseURL(s.addr, db)))
		noError(t, err)
		t.Cleanup(func() { disconnect(client) })
		clients[s] = client
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			d, err := asDriver(New(clients[serverOf(t)].Database(db), &Options{Collection: collection(t)}))
			noError(t, err)
			return d
		},
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, serverOf(t).databaseURL(n.Addr(serverOf(t).addr), db)+"&collection="+collection(t))
		},
		OtherStores: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver {
				return open(t, server.databaseURL(server.addr, db)+"&collection=other")
			},
			func(t testing.TB) driver.Driver { return open(t, server.databaseURL(server.addr, newDatabase())) },
		},
		Unit: 4 * time.Second,
	})
}
