package mongolock

import (
	"cmp"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// checkConfig returns an error if the settings of the entries' collection are unsuitable,
// as far as the user may read them. A missing collection is not an error: the driver
// creates it.
func (t *store) checkConfig(ctx context.Context, g *greeting) *engine.ConfigError {
	configErr := cmp.Or(t.checkOptions(ctx), t.checkIndexes(ctx))
	if configErr == nil && g.isRouter() {
		configErr = t.checkShards(ctx)
	}
	return configErr
}

func (t *store) checkOptions(ctx context.Context) *engine.ConfigError {
	const hint = "use another collection (collection=NAME), which mongolock creates"
	all, err := t.db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: t.Collection}})
	if err != nil || len(all) != 1 {
		return nil //nolint:nilerr // a user may lock without the right to list collections
	}
	has := func(option string) bool {
		v, err := all[0].Options.LookupErr(option)
		return err == nil && v.String() != "false"
	}
	switch {
	case has("collation"):
		return &engine.ConfigError{Problem: "the collection " + t.Collection + " has a collation, in which different names can be equal", Hint: hint}
	case has("capped"):
		return &engine.ConfigError{Problem: "the collection " + t.Collection + " is capped: it drops the oldest locks while they are held", Hint: hint}
	case all[0].Type != "" && all[0].Type != "collection":
		return &engine.ConfigError{Problem: t.Collection + " is a " + all[0].Type + ", and not a collection", Hint: hint}
	}
	return nil
}

// checkIndexes returns an error for an index that makes the server delete entries too
// early: any TTL index except the driver's own.
func (t *store) checkIndexes(ctx context.Context) *engine.ConfigError {
	all, _ := t.db.Collection(t.Collection).Indexes().ListSpecifications(ctx)
	for _, s := range all {
		if _, err := s.KeysDocument.LookupErr("forget"); err != nil && s.ExpireAfterSeconds != nil {
			return &engine.ConfigError{
				Problem: "the collection " + t.Collection + " has the TTL index " + s.Name + ", which makes the server delete locks while they are held",
				Hint:    "drop the TTL index: db.getCollection(NAME).dropIndex(INDEX)",
			}
		}
	}
	return nil
}

// checkShards checks the shard key of the collection. With any other key than _id,
// several shards can each have a document for the same name.
func (t *store) checkShards(ctx context.Context) *engine.ConfigError {
	var c struct {
		Key     bson.Raw `bson:"key"`
		Dropped bool     `bson:"dropped"`
	}
	err := t.db.Client().Database("config").Collection("collections").
		FindOne(ctx, bson.D{{Key: "_id", Value: t.db.Name() + "." + t.Collection}}).Decode(&c)
	fields, _ := c.Key.Elements()
	if err != nil || c.Dropped || len(fields) == 0 || len(fields) == 1 && fields[0].Key() == "_id" {
		return nil //nolint:nilerr // as above
	}
	return &engine.ConfigError{
		Problem: "the collection " + t.Collection + " is sharded by " + c.Key.String() + ": two shards can have an entry of one name",
		Hint:    "leave the collection unsharded, or shard it by _id",
	}
}

// majorityReadFindings checks whether the server supports reads with the concern
// "majority", which the driver needs.
func (t *store) majorityReadFindings(ctx context.Context) []driver.Finding {
	var s struct {
		Engine struct {
			Committed *bool `bson:"supportsCommittedReads"`
		} `bson:"storageEngine"`
	}
	err := t.db.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}}).Decode(&s)
	if err != nil || s.Engine.Committed == nil || *s.Engine.Committed {
		return nil // some users have no right to this command
	}
	return engine.Found(driver.SeverityError, "read concern", "the server supports no reads with concern majority, and no change streams",
		majorityHint)
}

const majorityHint = "start the members without enableMajorityReadConcern=false"
