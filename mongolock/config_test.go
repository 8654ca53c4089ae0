package mongolock

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// cursorAnswer returns a cursor with one document.
func cursorAnswer(d bson.D) bson.D {
	return bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "db.c"}, {Key: "firstBatch", Value: bson.A{d}}}}, {Key: "ok", Value: 1.0}}
}

// collectionAnswer returns the answer of listCollections for a collection.
func collectionAnswer(option string, value any) bson.D {
	return cursorAnswer(bson.D{{Key: "name", Value: "pawl"}, {Key: "type", Value: "collection"}, {Key: "options", Value: bson.D{{Key: option, Value: value}}}})
}

// openError returns the error of an Open.
func openError(t *testing.T, url string) error {
	d, err := asDriver(Open(within(t, 20*time.Second), url))
	if err == nil {
		_ = d.Close()
	}
	return err
}

// Open refuses a collection in which different names are equal, or whose documents
// disappear. The doctor reports a later change of the collection. A proxy gives the
// answers of MongoDB's documentation.
func TestAnUnsuitableCollectionIsRefused(t *testing.T) {
	t.Parallel()
	m, db, d := startReplicaSet(t)
	expires := cursorAnswer(bson.D{{Key: "v", Value: 2}, {Key: "name", Value: "at_1"}, {Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "expireAfterSeconds", Value: int32(60)}})
	sharded := cursorAnswer(bson.D{{Key: "_id", Value: db + ".pawl"}, {Key: "key", Value: bson.D{{Key: "fence", Value: "hashed"}}}})
	router := &plan{command: "hello", append: bson.D{{Key: "msg", Value: "isdbgrid"}}, matches: func(c bson.D) bool { return field(c, "$db") == db }}
	for want, plans := range map[string][]*plan{
		"collation": {{command: "listCollections", replace: collectionAnswer("collation", bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}})}},
		"capped":    {{command: "listCollections", replace: collectionAnswer("capped", true)}},
		"TTL index": {{command: "listIndexes", replace: expires}},
		"sharded":   {router, {command: "find", replace: sharded, matches: func(c bson.D) bool { return c[0].Value == "collections" }}},
	} {
		for range 2 { // for Open, and for Diagnose
			for _, p := range plans {
				copied := *p
				m.addPlans(&copied)
			}
		}
		err := openError(t, m.url(db))
		if e := wantDriverError(t, err, true, ""); e.Hint == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		finds(t, d, "error", want)
	}
	for _, suitable := range []bson.D{collectionAnswer("capped", false), collectionAnswer("validator", bson.D{})} {
		m.addPlans(&plan{command: "listCollections", replace: suitable})
		open(t, m.url(db))
	}
}

// An operator has added a validator, which refuses the driver's documents.
func TestErrorsNameAValidator(t *testing.T) {
	t.Parallel()
	m, _, d := startReplicaSet(t)
	m.addPlans(&plan{command: "findAndModify", replace: refusal(validationFailed, "DocumentValidationFailure")})
	_, err := d.Acquire(within(t, 20*time.Second), mutex("job"))
	wantDriverError(t, err, true, "validator")
}

// If a server is too old, or has no majority reads, the error has the reason.
func TestAServerThatIsTooOldIsRefused(t *testing.T) {
	t.Parallel()
	m, db, d := startReplicaSet(t)
	unknown := bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 59}, {Key: "codeName", Value: "CommandNotFound"}, {Key: "errmsg", Value: "no such command: 'hello'"}}
	m.addPlans(&plan{command: "hello", replace: unknown, matches: func(c bson.D) bool { return field(c, "$db") == db }})
	wantDriverError(t, openError(t, m.url(db)), true, "4.4.2")
	none := bson.D{{Key: "storageEngine", Value: bson.D{{Key: "supportsCommittedReads", Value: false}}}, {Key: "ok", Value: 1.0}}
	m.addPlans(&plan{command: "serverStatus", replace: none})
	finds(t, d, "error read concern")
	m.addPlans(&plan{command: "find", replace: refusal(noMajorityReads, "ReadConcernMajorityNotEnabled")})
	_, err := d.Inspect(within(t, 20*time.Second), "job")
	wantDriverError(t, err, true, majorityHint)
	for range 20 { // the client may repeat "hello" several times
		for _, command := range []string{"hello", "isMaster", "ismaster"} {
			m.addPlans(&plan{command: command, append: bson.D{{Key: "maxWireVersion", Value: int32(8)}}})
		}
	}
	wantDriverError(t, openError(t, m.url(db)), true, "4.4.2")
}
