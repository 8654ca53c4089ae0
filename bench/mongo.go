package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	_ "github.com/pawl-go/pawl/mongolock"
)

// realMongoURL returns the URL of a server that bench does not start. If it is empty,
// bench uses the tests' FerretDB, which handles one request at a time, on SQLite.
func realMongoURL() string { return os.Getenv("PAWL_TEST_MONGODB_URL") }

func mongoNote() string {
	if realMongoURL() != "" {
		return ""
	}
	return "This is not MongoDB but FerretDB, behind a proxy that forwards one request at a time. Its times say\n" +
		"nothing about MongoDB. PAWL_TEST_MONGODB_URL can name a MongoDB."
}

const mongoDatabase = "pawl_bench"

func mongoURL(addr string) string {
	u, err := url.Parse(addr)
	if !strings.Contains(addr, "://") || err != nil {
		return "mongodb://" + addr + "/" + mongoDatabase
	}
	u.Path = "/" + mongoDatabase
	return u.String()
}

func startMongo() (server, error) {
	if at := realMongoURL(); at != "" {
		return externalMongo(at), nil
	}
	bin, err := buildServer("ferretdb")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pawl-bench")
	if err != nil {
		return nil, err
	}
	addr, _, err := freeAddr()
	if err != nil {
		return nil, err
	}
	count, _, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &serverProcess{addr: addr, dir: dir}
	p.count = func() int64 { return receivedCount(count) }
	p.cmd = exec.Command(bin, "-data", dir, "-listen", addr, "-count", count)
	if _, err := p.cmd.StdinPipe(); err != nil { // so that FerretDB ends with this process
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	err = waitReady(func() error {
		c, err := mongo.Connect(options.Client().ApplyURI(mongoURL(addr)))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		defer c.Disconnect(ctx)
		return c.Ping(ctx, nil)
	})
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// receivedCount returns the number of messages that FerretDB has received.
func receivedCount(at string) (n int64) {
	r, err := http.Get("http://" + at)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	_, _ = fmt.Fscan(r.Body, &n)
	return n
}

// externalMongo is the URL of a server that bench did not start. bench cannot measure its
// processor time.
type externalMongo string

func (s externalMongo) address() string     { return string(s) }
func (externalMongo) cpu() time.Duration    { return 0 }
func (externalMongo) calls(contender) int64 { return 0 }

func (s externalMongo) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if c, err := mongo.Connect(options.Client().ApplyURI(mongoURL(string(s)))); err == nil {
		_ = c.Database(mongoDatabase).Drop(ctx)
		_ = c.Disconnect(ctx)
	}
}

// deleteDocument returns a remover that deletes the document of a lock.
func deleteDocument(collection string) remover {
	return func(s server, _, _ client, name string) error {
		c, err := mongo.Connect(options.Client().ApplyURI(mongoURL(s.address())))
		if err != nil {
			return err
		}
		defer c.Disconnect(context.Background())
		r, err := c.Database(mongoDatabase).Collection(collection).DeleteOne(context.Background(), bson.D{{Key: "_id", Value: name}})
		if err == nil && r.DeletedCount != 1 {
			err = fmt.Errorf("the server has no document %q", name)
		}
		return err
	}
}

func mongoContenders() []contender {
	return []contender{
		{name: "polled document", open: openMongoDocument, deleteLock: deleteDocument("floor")},
		{name: "pawl", open: openURL(mongoURL), renews: true, notifies: true, deleteLock: deleteDocument("pawl")},
	}
}

// mongoDocument is the floor: a document with an end by the client's clock, and no fence,
// queue or renewal. One findAndModify locks, and one unlocks. A client without the lock
// retries after a pause that grows from 1 ms to 10 ms.
type mongoDocument struct {
	client *mongo.Client
	locks  *mongo.Collection
	ttl    time.Duration
}

func openMongoDocument(addr string, ttl time.Duration) (client, error) {
	c, err := mongo.Connect(options.Client().ApplyURI(mongoURL(addr)))
	if err != nil {
		return nil, err
	}
	majority := options.Collection().SetWriteConcern(writeconcern.Majority())
	return &mongoDocument{c, c.Database(mongoDatabase).Collection("floor", majority), ttl}, nil
}

func (m *mongoDocument) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	token := bson.NewObjectID()
	for pause := time.Millisecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := m.findAndSet(ctx, bson.D{{Key: "_id", Value: name}, {Key: "ends", Value: bson.D{{Key: "$lt", Value: time.Now()}}}}, token, time.Now().Add(m.ttl), true)
		switch {
		case err == nil:
			return func() error {
				mine := bson.D{{Key: "_id", Value: name}, {Key: "token", Value: token}}
				return m.findAndSet(context.Background(), mine, bson.NilObjectID, time.Unix(0, 0), false)
			}, nil, nil
		case !mongo.IsDuplicateKeyError(err):
			return nil, nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (m *mongoDocument) findAndSet(ctx context.Context, filter bson.D, token bson.ObjectID, ends time.Time, upsert bool) error {
	change := bson.D{{Key: "$set", Value: bson.D{{Key: "token", Value: token}, {Key: "ends", Value: ends}}}}
	err := m.locks.FindOneAndUpdate(ctx, filter, change, options.FindOneAndUpdate().SetUpsert(upsert)).Err()
	if upsert && errors.Is(err, mongo.ErrNoDocuments) {
		return nil // the collection had no such document before
	}
	return err
}

func (m *mongoDocument) close() { _ = m.client.Disconnect(context.Background()) }
