package fence_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/testservers"
)

// collection returns an empty collection, on the server of PAWL_TEST_MONGODB_URL or on
// FerretDB.
func collection(t *testing.T) *mongo.Collection {
	t.Helper()
	url := os.Getenv("PAWL_TEST_MONGODB_URL")
	if url == "" {
		skipIfShort(t, "it builds FerretDB")
		data := t.TempDir()
		url = "mongodb://" + testservers.Start(t, "ferretdb", func(addr string) []string {
			return []string{"-data", data, "-listen", addr}
		})
	}
	client := must(mongo.Connect(options.Client().ApplyURI(url)))(t)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	c := client.Database("pawl_fence_test").Collection("accounts")
	noError(t, c.Drop(t.Context()))
	return c
}

// missError returns the reason for which an update found no document. It is nil if the
// document exists and the fence is not stale.
func missError(ctx context.Context, c *mongo.Collection, resource, field string, f uint64) error {
	var known bson.M
	if err := c.FindOne(ctx, bson.M{"_id": resource}).Decode(&known); err != nil {
		return err
	}
	highest, _ := known[field].(int64)
	return fence.Compare(resource, f, uint64(highest))
}

func TestFencesInMongo(t *testing.T) {
	c := collection(t)
	balance := func(resource string) int32 {
		var account struct{ Balance int32 }
		noError(t, c.FindOne(t.Context(), bson.M{"_id": resource}).Decode(&account))
		return account.Balance
	}
	writer := func(upsert bool) func(resource string, f uint64) error {
		return func(resource string, f uint64) error {
			filter, update, err := fence.Mongo(resource, f)
			if err != nil {
				return err
			}
			filter["_id"] = resource
			update["$inc"] = bson.M{"balance": 10}
			done, err := c.UpdateOne(t.Context(), filter, update, options.UpdateOne().SetUpsert(upsert))
			if mongo.IsDuplicateKeyError(err) && upsert || err == nil && done.MatchedCount+done.UpsertedCount == 0 {
				return missError(t.Context(), c, resource, fence.MongoSeen, f)
			}
			return err
		}
	}
	read := func(resource string, f uint64) error {
		filter, update, err := fence.MongoReader(resource, f)
		if err != nil {
			return err
		}
		filter["_id"] = resource
		var account struct{ Balance int32 }
		err = c.FindOneAndUpdate(t.Context(), filter, update).Decode(&account)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return missError(t.Context(), c, resource, fence.MongoFence, f)
		}
		return err
	}

	if err := writer(false)("account", 7); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Errorf("a write to no document: %v", err)
	}
	accounts := bson.A{bson.M{"_id": "account", "balance": 0}, bson.M{"_id": "other", "balance": 0}, bson.M{"_id": "shared", "balance": 0}}
	must(c.InsertMany(t.Context(), accounts))(t)
	fencetest.ChecksStaleWrites(t, writer(false))
	fencetest.ChecksArguments(t, writer(false))
	fencetest.ChecksReadersAndWriters(t, writer(false), read)
	if n := balance("account"); n != 50 {
		t.Errorf("the balance is %d, want 50", n)
	}

	must(c.DeleteMany(t.Context(), bson.M{}))(t)
	fencetest.ChecksStaleWrites(t, writer(true))
	fencetest.ChecksArguments(t, writer(true))
	if n := balance("account"); n != 50 {
		t.Errorf("with upserts the balance is %d, want 50", n)
	}
}
