package mongolock

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/internal/servertest"
)

// An operator deletes the documents: held names are granted again, with greater fences,
// and the next renewal tells the holder.
func TestDocumentsThatAreDeleted(t *testing.T) {
	t.Parallel()
	server := serve(t)
	db := database()
	one, two := open(t, server.at(server.addr, db)), open(t, server.at(server.addr, db))
	at, err := one.store.server(ctx)
	noError(t, err)
	servertest.Forgets(t, one, two, func() {
		if _, err := at.entries.DeleteMany(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
	})
}
