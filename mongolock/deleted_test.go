package mongolock

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/driver"
)

// An operator deletes the documents: held names are granted again, with greater fences,
// and the next renewal tells the holder.
func TestDocumentsThatAreDeleted(t *testing.T) {
	t.Parallel()
	server := serve(t)
	db := database()
	one, two := open(t, server.at(server.addr, db)), open(t, server.at(server.addr, db))
	c := mutex("job")
	first := gets(t, one, c)
	at, err := one.store.server(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.entries.DeleteMany(ctx, bson.D{}); err != nil {
		t.Fatal(err)
	}
	if second := gets(t, two, mutex("job")); second.Fence <= first.Fence {
		t.Errorf("fence %d after %d", second.Fence, first.Fence)
	}
	answers, err := one.Renew(ctx, []driver.LeaseRef{lease(c)})
	if err != nil || !errors.Is(answers[0], driver.ErrNoSuchLease) {
		t.Errorf("the holder heard %v, %v; want ErrNoSuchLease", answers, err)
	}
}
