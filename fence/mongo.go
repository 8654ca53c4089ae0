package fence

// MongoFilter is to be merged into the filter of an update, and [MongoUpdate] into the
// update, as maps that every driver takes: a document is found only if no higher fence
// was written to it. The update of one document is atomic, so nothing comes between the
// check and the write.
//
//	filter := fence.MongoFilter(lease.Fence())
//	filter["_id"] = "account-1"
//	update := fence.MongoUpdate(lease.Fence())
//	update["$inc"] = bson.M{"balance": 10}
//	done, err := accounts.UpdateOne(ctx, filter, update)
//	if err == nil && done.MatchedCount == 0 { ... } // stale, or there is no such document
//
// With an upsert a stale write fails with a duplicate key, E11000. The fence is in the
// document's field "pawl_fence".
func MongoFilter(fence uint64) map[string]any {
	return map[string]any{"$or": []any{
		map[string]any{mongoField: map[string]any{"$exists": false}},
		map[string]any{mongoField: map[string]any{"$lte": int64(fence)}},
	}}
}

// MongoUpdate is what an update has to set beside its own. See [MongoFilter]. An update
// that has a "$set" of its own adds the field to that.
func MongoUpdate(fence uint64) map[string]any {
	return map[string]any{"$set": map[string]any{mongoField: int64(fence)}}
}

const mongoField = "pawl_fence"
