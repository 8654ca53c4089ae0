package mongolock

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// answers is a cursor with one document.
func answers(d bson.D) bson.D {
	return bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "db.c"}, {Key: "firstBatch", Value: bson.A{d}}}}, {Key: "ok", Value: 1.0}}
}

// made is the answer of listCollections for a collection.
func made(option string, value any) bson.D {
	return answers(bson.D{{Key: "name", Value: "pawl"}, {Key: "type", Value: "collection"}, {Key: "options", Value: bson.D{{Key: option, Value: value}}}})
}

// refused returns the error of an Open.
func refused(t *testing.T, url string) error {
	d, err := asDriver(Open(within(t, 20*time.Second), url))
	if err == nil {
		_ = d.Close()
	}
	return err
}

// A collection in which different names are equal, or whose documents disappear, is
// refused when it is opened, and the doctor reports one that has become so. A proxy gives
// the answers of MongoDB's documentation.
func TestACollectionThatIsUnfitIsRefused(t *testing.T) {
	t.Parallel()
	m, db, d := onReplicas(t)
	expires := answers(bson.D{{Key: "v", Value: 2}, {Key: "name", Value: "at_1"}, {Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "expireAfterSeconds", Value: int32(60)}})
	sharded := answers(bson.D{{Key: "_id", Value: db + ".pawl"}, {Key: "key", Value: bson.D{{Key: "fence", Value: "hashed"}}}})
	router := &plan{command: "hello", adds: bson.D{{Key: "msg", Value: "isdbgrid"}}, is: func(c bson.D) bool { return field(c, "$db") == db }}
	for want, plans := range map[string][]*plan{
		"collation": {{command: "listCollections", instead: made("collation", bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}})}},
		"capped":    {{command: "listCollections", instead: made("capped", true)}},
		"TTL index": {{command: "listIndexes", instead: expires}},
		"sharded":   {router, {command: "find", instead: sharded, is: func(c bson.D) bool { return c[0].Value == "collections" }}},
	} {
		for range 2 { // opened, and diagnosed
			for _, p := range plans {
				again := *p
				m.next(&again)
			}
		}
		err := refused(t, m.url(db))
		if e := explained(t, err, true, ""); e.Hint == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		finds(t, d, "error", want)
	}
	for _, fit := range []bson.D{made("capped", false), made("validator", bson.D{})} {
		m.next(&plan{command: "listCollections", instead: fit})
		open(t, m.url(db))
	}
}

// A validator that an operator has added refuses the driver's documents.
func TestAValidatorThatRefusesEntriesIsNamed(t *testing.T) {
	t.Parallel()
	m, _, d := onReplicas(t)
	m.next(&plan{command: "findAndModify", instead: refusal(validationFailed, "DocumentValidationFailure")})
	_, err := d.Acquire(within(t, 20*time.Second), mutex("job"))
	explained(t, err, true, "validator")
}

// A server that is too old, or cannot read what a majority has, is refused with the
// reason.
func TestAServerThatIsTooOldIsRefused(t *testing.T) {
	t.Parallel()
	m, db, d := onReplicas(t)
	unknown := bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 59}, {Key: "codeName", Value: "CommandNotFound"}, {Key: "errmsg", Value: "no such command: 'hello'"}}
	m.next(&plan{command: "hello", instead: unknown, is: func(c bson.D) bool { return field(c, "$db") == db }})
	explained(t, refused(t, m.url(db)), true, "4.4.2")
	none := bson.D{{Key: "storageEngine", Value: bson.D{{Key: "supportsCommittedReads", Value: false}}}, {Key: "ok", Value: 1.0}}
	m.next(&plan{command: "serverStatus", instead: none})
	finds(t, d, "error read concern")
	m.next(&plan{command: "find", instead: refusal(noMajorityReads, "ReadConcernMajorityNotEnabled")})
	_, err := d.Inspect(within(t, 20*time.Second), "job")
	explained(t, err, true, majorityHint)
	for range 20 { // as often as the client asks
		for _, command := range []string{"hello", "isMaster", "ismaster"} {
			m.next(&plan{command: command, adds: bson.D{{Key: "maxWireVersion", Value: int32(8)}}})
		}
	}
	explained(t, refused(t, m.url(db)), true, "4.4.2")
}
