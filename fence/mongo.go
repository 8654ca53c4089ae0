package fence

// Mongo is what a write to a document of MongoDB has to have besides its own: a condition
// of its filter and a part of its update, as maps that every driver takes. The document
// is found only if no higher fence was written to it. The update of one document is
// atomic, so nothing comes between the check and the write.
//
//	filter, update, err := fence.Mongo("account-1", lease.Fence())
//	filter["_id"] = "account-1"
//	update["$inc"] = bson.M{"balance": 10}
//	done, err := accounts.UpdateOne(ctx, filter, update)
//	if err == nil && done.MatchedCount == 0 { ... } // stale, or there is no such document
//
// The filter has a condition on the field "pawl_fence", and the update a "$max" of it:
// who has a "$max" too adds the field to that. With an upsert a stale write fails with a
// duplicate key, E11000. The error matches pawl.ErrInvalid if the fence is none.
func Mongo(resource string, fence uint64) (filter, update map[string]any, err error) {
	if err := validate(resource, fence); err != nil {
		return nil, nil, err
	}
	filter = map[string]any{mongoField: map[string]any{"$not": map[string]any{"$gt": int64(fence)}}}
	update = map[string]any{"$max": map[string]any{mongoField: int64(fence)}}
	return filter, update, nil
}

const mongoField = "pawl_fence"
