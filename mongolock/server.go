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

// server is what has to be known of the server before it can be used rightly.
type server struct {
	entries *mongo.Collection // read as a majority has it
	latest  *mongo.Collection // the same, read so that nothing acknowledged before is missed
	signals *mongo.Collection
	pushes  bool // it has change streams
	terse   bool // it can return a part of the document that it updates
}

// greeting is what a server says of itself.
type greeting struct {
	LocalTime time.Time `bson:"localTime"`
	SetName   string    `bson:"setName"`
	Msg       string    `bson:"msg"`
	Hosts     []string  `bson:"hosts"`
	Passives  []string  `bson:"passives"`
	Arbiters  []string  `bson:"arbiters"`
	Topology  bson.Raw  `bson:"topologyVersion"` // MongoDB has it, those that imitate it do not
}

func (g *greeting) router() bool   { return g.Msg == "isdbgrid" }
func (g *greeting) replicas() bool { return g.SetName != "" || g.router() }

// server asks once what the server is.
func (t *store) server(ctx context.Context) (*server, error) {
	t.mu.Lock()
	at := t.at
	t.mu.Unlock()
	if at != nil {
		return at, nil
	}
	g, err := t.greet(ctx)
	if err != nil {
		return nil, err
	}
	if unfit := t.unfit(ctx, g); unfit != nil {
		return nil, engine.Failure(unfit, t.place(), "", advice)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil && t.life.Err() == nil {
		t.at = t.serverOf(g)
		t.loops.Go(t.index)
	}
	return t.at, t.life.Err()
}

// greet asks the server what it is, and what time it has.
func (t *store) greet(ctx context.Context) (*greeting, error) {
	var g greeting
	sent := time.Now()
	err := t.db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&g)
	if err == nil && g.LocalTime.IsZero() {
		err = errors.New("the server does not say what time it is")
	}
	if err != nil {
		return nil, t.failed(ctx, err)
	}
	t.clock.Learn(locktable.At(g.LocalTime), sent, time.Now())
	return &g, nil
}

// serverOf chooses how to read and write.
//
// Grants are acknowledged by a majority, so no election forgets them. A server alone has
// none, and writes its journal. What is read of one name is linearizable where there are
// replicas: a member that was primary, and does not know better yet, cannot answer that.
// An old answer would grant nothing, as it does not survive the swap; but it could say
// that somebody holds nothing who does.
func (t *store) serverOf(g *greeting) *server {
	acknowledged, newest := writeconcern.Majority(), readconcern.Linearizable()
	if !g.replicas() {
		acknowledged.Journal, newest = new(bool), readconcern.Local()
		*acknowledged.Journal = true
	}
	o := options.Collection().SetWriteConcern(acknowledged).SetReadPreference(readpref.Primary())
	read := readconcern.Majority()
	if !g.replicas() {
		read = newest
	}
	return &server{
		entries: t.db.Collection(t.Collection, o.SetReadConcern(read)),
		latest:  t.db.Collection(t.Collection, o.SetReadConcern(newest)),
		signals: t.db.Collection(t.Collection+".signals", o.SetReadConcern(read)),
		pushes:  g.replicas() && !t.NoPush,
		terse:   g.Topology != nil,
	}
}

// index makes the collections, and the indexes by which the server forgets what is old.
// Twenty processes may do so at once. Nothing depends on them but space, so it goes on
// beside the first steps, and where it fails the doctor says so.
func (t *store) index() {
	ctx, cancel := context.WithTimeout(t.life, time.Minute)
	defer cancel()
	t.mu.Lock()
	at := t.at
	t.mu.Unlock()
	for _, i := range []struct {
		in    *mongo.Collection
		by    string
		after int32
	}{{at.entries, "forget", 0}, {at.signals, "at", signalLife}} {
		_, _ = i.in.Indexes().CreateOne(ctx, mongo.IndexModel{
			Keys: bson.D{{Key: i.by, Value: 1}}, Options: options.Index().SetExpireAfterSeconds(i.after),
		})
	}
}

// failed says at the end of ctx, which the client may see a moment before it has come,
// what took so long, if the client knows.
func (t *store) failed(ctx context.Context, err error) error {
	if err == nil || t.life.Err() != nil {
		return t.life.Err()
	}
	deadline, ok := ctx.Deadline()
	if ok && (errors.Is(err, context.DeadlineExceeded) || mongo.IsTimeout(err)) && time.Until(deadline) < 50*time.Millisecond {
		<-ctx.Done()
	}
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled), ended != nil && err == ended: //nolint:errorlint // it says no more
		return ended
	case ended != nil && !errors.Is(err, ended):
		err = fmt.Errorf("%w (%w)", ended, err)
	}
	return engine.Failure(err, t.place(), "", advice)
}
