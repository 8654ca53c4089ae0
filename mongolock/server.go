package mongolock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// server has the collections, and the abilities of the database server on which the
// driver depends.
type server struct {
	entries    *mongo.Collection // with read concern "majority"
	latest     *mongo.Collection // entries, with reads that return each acknowledged write
	signals    *mongo.Collection
	pushes     bool // the server has change streams that the driver may use
	canProject bool // the server can return a part of the document that it updates
}

// greeting is the server's answer to "hello".
type greeting struct {
	LocalTime time.Time `bson:"localTime"`
	SetName   string    `bson:"setName"`
	Msg       string    `bson:"msg"`
	Hosts     []string  `bson:"hosts"`
	Passives  []string  `bson:"passives"`
	Arbiters  []string  `bson:"arbiters"`
	Topology  bson.Raw  `bson:"topologyVersion"` // MongoDB has this field, its clones do not
}

func (g *greeting) isRouter() bool     { return g.Msg == "isdbgrid" }
func (g *greeting) isReplicated() bool { return g.SetName != "" || g.isRouter() }

// server returns the server's abilities. After the first answer it sends no request.
func (t *store) server(ctx context.Context) (*server, error) {
	if srv := t.srv.Load(); srv != nil {
		return srv, nil
	}
	g, err := t.greet(ctx)
	if err != nil {
		return nil, err
	}
	if configErr := t.checkConfig(ctx, g); configErr != nil {
		return nil, engine.Failure(configErr, t.location(), "", advice)
	}
	if srv := t.serverOf(g); t.life.Err() == nil && t.srv.CompareAndSwap(nil, srv) {
		t.loops.Go(func() { t.createIndexes(srv) })
	}
	return t.srv.Load(), t.life.Err()
}

// greet asks the server for its kind and its time.
func (t *store) greet(ctx context.Context) (*greeting, error) {
	var g greeting
	sent := time.Now()
	err := t.db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&g)
	if err == nil && g.LocalTime.IsZero() {
		err = errors.New("the server's answer has no time")
	}
	if err != nil {
		return nil, t.driverError(ctx, err)
	}
	t.clock.Learn(locktable.At(g.LocalTime), sent, time.Now())
	return &g, nil
}

// serverOf returns the abilities, and chooses the read and write concerns.
//
// A majority acknowledges grants, so no election loses them. A single server has no
// majority, and writes its journal. Reads of one name are linearizable on a replica set,
// because a former primary that has not detected an election cannot answer them. An
// outdated answer could cause no grant, because the swap would fail. But the driver could
// report a loss although the lease holds.
func (t *store) serverOf(g *greeting) *server {
	acknowledged, newest, read := writeconcern.Majority(), readconcern.Linearizable(), readconcern.Majority()
	if !g.isReplicated() {
		acknowledged.Journal, newest, read = new(true), readconcern.Local(), readconcern.Local()
	}
	o := options.Collection().SetWriteConcern(acknowledged).SetReadPreference(readpref.Primary())
	return &server{
		entries:    t.db.Collection(t.Collection, o.SetReadConcern(read)),
		latest:     t.db.Collection(t.Collection, o.SetReadConcern(newest)),
		signals:    t.db.Collection(t.Collection+".signals", o.SetReadConcern(read)),
		pushes:     g.isReplicated() && !t.NoPush,
		canProject: g.Topology != nil,
	}
}

// A ttlIndex makes the server delete old documents.
type ttlIndex struct {
	collection    *mongo.Collection
	timeField     string // the field that has a time
	maxAgeSeconds int32  // the age of that time, in seconds
}

func (srv *server) ttlIndexes() []ttlIndex {
	return []ttlIndex{{srv.entries, "forget", 0}, {srv.signals, "at", signalTTLSeconds}}
}

// createIndexes creates the collections, and the indexes by which the server deletes old
// documents. Many processes may do so at the same time. The indexes only save space, so
// createIndexes runs during the first steps, and the doctor reports a missing index.
func (t *store) createIndexes(srv *server) {
	ctx, cancel := context.WithTimeout(t.life, time.Minute)
	defer cancel()
	for _, i := range srv.ttlIndexes() {
		_, _ = i.collection.Indexes().CreateOne(ctx, mongo.IndexModel{
			Keys: bson.D{{Key: i.timeField, Value: 1}}, Options: options.Index().SetExpireAfterSeconds(i.maxAgeSeconds),
		})
	}
}

// driverError converts an error to a *driver.Error. If ctx has ended, it adds the error
// of MongoDB's client, which may show the cause of the delay. That client may give up a
// moment before ctx ends, so driverError waits for the end of ctx.
func (t *store) driverError(ctx context.Context, err error) error {
	if err == nil || t.life.Err() != nil {
		return t.life.Err()
	}
	deadline, ok := ctx.Deadline()
	if ok && (errors.Is(err, context.DeadlineExceeded) || mongo.IsTimeout(err)) && time.Until(deadline) < 50*time.Millisecond {
		<-ctx.Done()
	}
	switch ctxErr := ctx.Err(); {
	case errors.Is(ctxErr, context.Canceled), ctxErr != nil && err == ctxErr: //nolint:errorlint // err adds nothing
		return ctxErr
	case ctxErr != nil && !errors.Is(err, ctxErr):
		err = fmt.Errorf("%w (%w)", ctxErr, err)
	}
	return engine.Failure(err, t.location(), "", advice)
}
