package mongolock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Diagnose implements driver.Diagnoser. It examines the kind of server, its members,
// version and clock, the write concern, the rights of the user, each document, change
// streams, and the TTL indexes.
func (d *lockDriver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	t := d.store
	if t.life.Err() != nil {
		return nil, driver.ErrClosed
	}
	sent := time.Now()
	g, err := t.greet(ctx)
	if err != nil {
		return nil, err
	}
	if e := t.checkConfig(ctx, g); e != nil {
		return engine.Found(driver.SeverityError, "collection", e.Problem, e.Hint), nil //nolint:nilerr // a finding
	}
	srv, err := t.server(ctx)
	if err != nil {
		return nil, err
	}
	rights := t.rightsFindings(ctx, srv)
	found := t.versionFindings(ctx)
	if len(rights) == 0 {
		found = append(found, locktable.Damaged(ctx, d)...)
	}
	found = slices.Concat(found, g.topologyFindings(), clockFindings(g.LocalTime, sent, time.Now()), t.configFindings(ctx), t.majorityReadFindings(ctx), rights, srv.missingIndexes(ctx))
	engine.SortFindings(found)
	return found, t.driverError(ctx, ctx.Err())
}

func (t *store) versionFindings(ctx context.Context) []driver.Finding {
	var b struct {
		Version string `bson:"version"`
		Ferret  string `bson:"ferretdbVersion"`
	}
	if t.db.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&b) != nil {
		return nil // some users have no right to this command
	}
	if b.Ferret != "" {
		found, isV2 := engine.Findings(engine.Version("FerretDB", b.Ferret)), strings.HasPrefix(b.Ferret, "v2.")
		found.Add(!isV2, driver.SeverityError, "server", "it is FerretDB "+b.Ferret+", whose updates are not atomic: two clients can be granted one name",
			"use MongoDB, or the database below FerretDB by its own URL")
		found.Add(isV2, driver.SeverityWarning, "server", "it is FerretDB "+b.Ferret+", on which Pawl was not tested",
			"use MongoDB, or PostgreSQL by its own URL")
		return found
	}
	found := engine.Findings(engine.Version("MongoDB", b.Version))
	major, _, _ := strings.Cut(b.Version, ".")
	n, err := strconv.Atoi(major)
	found.Add(err == nil && n < 5, driver.SeverityWarning, "version", "it is MongoDB "+b.Version+", which is no longer maintained",
		"use MongoDB 6.0 or later")
	return found
}

// topologyFindings checks which members acknowledge a write.
func (g *greeting) topologyFindings() []driver.Finding {
	voters := len(g.Hosts) + len(g.Passives) + len(g.Arbiters)
	switch {
	case g.isRouter():
		return engine.Found(driver.SeverityInfo, "topology", "it is a sharded cluster: the clock of the shard's primary decides",
			"do not shard the collection, and synchronize the clocks of all members (NTP)")
	case !g.isReplicated():
		return engine.Found(driver.SeverityWarning, "topology", "the server stands alone: if it stops, nothing can be locked, and there are no change streams",
			"make it a replica set, with three members if locks have to survive the loss of one")
	case voters < 3:
		return engine.Found(driver.SeverityWarning, "topology", fmt.Sprintf("the replica set has %d members: when one stops, nothing can be locked", voters),
			"add members, up to three that hold data")
	case len(g.Arbiters) > 0 && len(g.Hosts) < 3:
		return engine.Found(driver.SeverityWarning, "topology", "every member that holds data is needed, because an arbiter acknowledges no writes",
			"replace the arbiter by a member that holds data")
	}
	return nil
}

// maxClockDifference is the smallest difference of two clocks that Diagnose reports. With
// NTP, clocks differ by less.
const maxClockDifference = 5 * time.Second

func clockFindings(serverTime, sent, now time.Time) []driver.Finding {
	if serverTime.After(sent.Add(-maxClockDifference)) && serverTime.Before(now.Add(maxClockDifference)) {
		return nil
	}
	return engine.Found(driver.SeverityInfo, "clock", fmt.Sprintf("the server's clock and this machine's are %v apart; only the server's counts", now.Sub(serverTime).Abs().Round(time.Second)),
		"synchronize both (NTP): a clock that is corrected in one step ends leases early")
}

// configFindings checks whether a majority acknowledges writes from its journals.
func (t *store) configFindings(ctx context.Context) []driver.Finding {
	var c struct {
		Config struct {
			Journals *bool `bson:"writeConcernMajorityJournalDefault"`
		} `bson:"config"`
	}
	err := t.db.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "replSetGetConfig", Value: 1}}).Decode(&c)
	if err != nil || c.Config.Journals == nil || *c.Config.Journals {
		return nil // some users have no right to this command, and the default is true
	}
	return engine.Found(driver.SeverityWarning, "write concern", "writeConcernMajorityJournalDefault is false: if a majority loses its power at once, the last grants are lost",
		"set it to true in rs.conf(), unless members keep their data in memory")
}

// rightsFindings tries the requests that the driver makes.
func (t *store) rightsFindings(ctx context.Context, srv *server) (found []driver.Finding) {
	noDocument := bson.D{{Key: "_id", Value: "doctor/" + t.inbox}}
	for _, try := range []struct {
		what string
		err  error
	}{
		{"find in " + t.Collection, srv.latest.FindOne(ctx, noDocument).Err()},
		{"update in " + t.Collection, errorOf(srv.entries.UpdateOne(ctx, noDocument, bson.D{{Key: "$set", Value: bson.D{{Key: "version", Value: 0}}}}))},
		{"insert into " + srv.signals.Name(), errorOf(srv.signals.InsertOne(ctx, append(noDocument, bson.E{Key: "at", Value: time.Now()})))},
		{"remove from " + srv.signals.Name(), errorOf(srv.signals.DeleteOne(ctx, noDocument))},
	} {
		if try.err != nil && !errors.Is(try.err, mongo.ErrNoDocuments) {
			found = append(found, engine.Found(driver.SeverityError, "rights", "cannot "+try.what+": "+try.err.Error(),
				"grant the user readWrite on the database "+t.db.Name())...)
		}
	}
	if !srv.pushes {
		return found
	}
	c, err := srv.signals.Watch(ctx, mongo.Pipeline{})
	if err == nil {
		_ = c.Close(ctx)
		return found
	}
	return append(found, engine.Found(driver.SeverityWarning, "change streams", "a waiter polls for signals, about 5 times a second, because there is no change stream: "+err.Error(),
		"grant the user the action changeStream on the database "+t.db.Name())...)
}

func errorOf[T any](_ T, err error) error { return err }

func (srv *server) missingIndexes(ctx context.Context) []driver.Finding {
	var found engine.Findings
	for _, index := range srv.ttlIndexes() {
		specs, err := index.collection.Indexes().ListSpecifications(ctx)
		exists := err != nil // some users have no right to list indexes
		for _, s := range specs {
			_, lookupErr := s.KeysDocument.LookupErr(index.timeField)
			exists = exists || lookupErr == nil && s.ExpireAfterSeconds != nil
		}
		found.Add(!exists, driver.SeverityWarning, "index", index.collection.Name()+" has no TTL index on "+index.timeField+": the server never deletes old documents, and the collection grows",
			fmt.Sprintf("db.getCollection(%q).createIndex({%s: 1}, {expireAfterSeconds: %d})", index.collection.Name(), index.timeField, index.maxAgeSeconds))
	}
	return found
}
