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
	// drivertest lets many subtests wait side by side. With more of them, the server,
	// which does one thing at a time, answers later than leases end.
	leaktest.Parallel(24)
	leaktest.Main(m)
}

// Each subtest has a collection of its own, because FerretDB gets slower with the size of
// one. Subtests with crowds have a server of their own, because it does one thing at a
// time, and the others measure delays.
func TestConformance(t *testing.T) {
	t.Parallel()
	crowds, server, db := serve(t), serve(t), database()
	of := func(t testing.TB) *testServer {
		for _, topic := range []string{"Concurrent", "Random", "Names", "List", "Client", "LargeBatch", "Many", "Hundred"} {
			if strings.Contains(t.Name(), topic) {
				return crowds
			}
		}
		return server
	}
	collection := func(t testing.TB) string {
		h := fnv.New64()
		_, _ = h.Write([]byte(t.Name()))
		return fmt.Sprintf("pawl%x", h.Sum(nil))
	}
	// The drivers of a server share one client, like those of a program, because
	// connecting takes the server longer than the tests.
	clients := map[*testServer]*mongo.Client{}
	for _, s := range []*testServer{crowds, server} {
		client, err := mongo.Connect(options.Client().ApplyURI(s.at(s.addr, db)))
		noError(t, err)
		t.Cleanup(func() { disconnect(client) })
		clients[s] = client
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			d, err := asDriver(New(clients[of(t)].Database(db), &Options{Collection: collection(t)}))
			noError(t, err)
			return d
		},
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, of(t).at(n.Addr(of(t).addr), db)+"&collection="+collection(t))
		},
		Elsewhere: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver { return open(t, server.at(server.addr, db)+"&collection=other") },
			func(t testing.TB) driver.Driver { return open(t, server.at(server.addr, database())) },
		},
		Unit: 4 * time.Second,
	})
}
