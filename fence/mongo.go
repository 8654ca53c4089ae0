package fence

// Mongo returns what a write to a document of MongoDB needs: a condition for its filter
// and a part of its update, as maps that every driver takes. The filter matches the
// document only if no higher fence was written to it. The update of one document is
// atomic, so nothing comes between the check and the write.
//
//	filter, update, err := fence.Mongo("account-1", lease.Fence())
//	filter["_id"] = "account-1"
//	update["$inc"] = bson.M{"balance": 10}
//	done, err := accounts.UpdateOne(ctx, filter, update)
//	if err == nil && done.MatchedCount == 0 {
//		// stale, or there is no such document, which Decode reports
//		err = accounts.FindOne(ctx, bson.M{"_id": "account-1"}).Decode(&known)
//		if err == nil {
//			err = fence.Compare("account-1", lease.Fence(), known.Seen) // a *StaleError
//		}
//	}
//
// The filter has a condition on the field [MongoSeen], and the update a "$max" of it and
// of [MongoFence]. If your update has a "$max", too, add the fields to that. With an
// upsert a stale write fails with a duplicate key, E11000. The error is a
// [*pawl.InvalidError] if the number is no fence; then both maps are nil, and writing to
// them panics.
func Mongo(resource string, fence uint64) (filter, update map[string]any, err error) {
	if err := validate(resource, fence); err != nil {
		return nil, nil, err
	}
	return notAbove(MongoSeen, fence), map[string]any{"$max": map[string]any{MongoFence: int64(fence), MongoSeen: int64(fence)}}, nil
}

// MongoReader is Mongo for a reader of an RWMutex. The filter matches the document unless
// a writer with a higher fence has written to it. Use the update in a FindOneAndUpdate
// that reads the document. The package comment says how to read more than once.
func MongoReader(resource string, fence uint64) (filter, update map[string]any, err error) {
	if err := validate(resource, fence); err != nil {
		return nil, nil, err
	}
	return notAbove(MongoFence, fence), map[string]any{"$max": map[string]any{MongoSeen: int64(fence)}}, nil
}

// notAbove returns a filter that also matches a document without the field.
func notAbove(field string, fence uint64) map[string]any {
	return map[string]any{field: map[string]any{"$not": map[string]any{"$gt": int64(fence)}}}
}

// The fields of a document that have its fences.
const (
	MongoFence = "pawl_fence" // the highest fence of a writer
	MongoSeen  = "pawl_seen"  // the highest fence of a writer or reader
)
