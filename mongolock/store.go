package mongolock

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// store is a swap.Store of documents, one for each name.
type store struct {
	Options
	inbox       string
	clock       swap.Clock
	claims      *engine.Claims
	maxBytes    int    // the server's limit for a document, in bytes
	closeClient func() // does nothing for a client of the caller

	life  context.Context // ends at Close
	end   context.CancelFunc
	loops engine.Background

	db  *mongo.Database
	srv atomic.Pointer[server] // nil until the server has answered
}

// Time implements swap.Store. A stamp is rounded down to whole milliseconds, and so is
// the start of a window. The window ends 2 ms later, to make up for that.
func (t *store) Time(ctx context.Context) (swap.Window, error) {
	w, err := t.clock.Ask(ctx, func(ctx context.Context) error { return errorOf(t.greet(ctx)) })
	w.From, w.To = w.From-w.From%1000, w.To.Add(2*time.Millisecond)
	return w, err
}

// Load implements swap.Store.
func (t *store) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	srv, err := t.server(ctx)
	if err != nil {
		return nil, err
	}
	entries, id := srv.entries, any(bson.D{{Key: "$in", Value: names}})
	if len(names) == 1 {
		entries, id = srv.latest, names[0]
	}
	timeAnswered := t.askTimeConcurrently(ctx)
	c, err := entries.Find(ctx, bson.D{{Key: "_id", Value: id}})
	all := make([]swap.Stored, len(names))
	if err == nil {
		found := map[string]swap.Stored{}
		err = eachDocument(ctx, c, func(d *document) (err error) {
			found[d.Name], err = d.stored()
			return err
		})
		for i, name := range names {
			all[i] = found[name]
		}
	}
	<-timeAnswered
	return all, t.driverError(ctx, err)
}

// eachDocument decodes the documents of a cursor.
func eachDocument[D any](ctx context.Context, c *mongo.Cursor, f func(*D) error) error {
	defer c.Close(ctx)
	for c.Next(ctx) {
		var d D
		if err := decode(c, &d); err != nil {
			return err
		}
		if err := f(&d); err != nil {
			return err
		}
	}
	return c.Err()
}

func decode(c *mongo.Cursor, into any) error {
	if err := c.Decode(into); err != nil {
		return &locktable.CorruptError{Problem: "its document: " + err.Error()}
	}
	return nil
}

// askTimeConcurrently asks for the server's time concurrently with another request,
// unless the time is known.
func (t *store) askTimeConcurrently(ctx context.Context) (done <-chan struct{}) {
	answered := make(chan struct{})
	if _, ok := t.clock.Window(time.Now()); ok {
		close(answered)
		return answered
	}
	go func() {
		defer close(answered)
		_, _ = t.greet(ctx) // on failure, Time asks again, and returns the error
	}()
	return answered
}

// Swap implements swap.Store.
func (t *store) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	srv, err := t.server(ctx)
	if err != nil {
		return nil, err
	}
	sent := time.Now()
	var stamps map[uint64]time.Time
	versions := make([]uint64, len(swaps))
	for i := range swaps {
		if err := t.checkSize(&swaps[i]); err != nil {
			return nil, engine.Failure(err, t.location(), "", advice)
		}
		versions[i] = max(1, rand.Uint64()>>1)
	}
	if len(swaps) == 1 {
		stamps, err = t.swapOne(ctx, srv, &swaps[0], versions[0])
	} else {
		stamps, err = t.swapMany(ctx, srv, swaps, versions)
	}
	if err != nil {
		return nil, t.driverError(ctx, err)
	}
	swapped := make([]swap.Swapped, len(swaps))
	for i := range swaps {
		if stamp, done := stamps[versions[i]]; done {
			swapped[i] = t.swapResult(&swaps[i], versions[i], stamp, sent)
		}
	}
	t.sendSignals(ctx, srv, swaps, swapped)
	return swapped, nil
}

// swapOne makes one swap in one round trip, because the answer has the stamp.
//
// MongoDB's client sends a write again if its answer was lost. A server that recognizes
// the second write returns the outcome of the first one. Otherwise the second write finds
// the version that the first one wrote, and changes nothing. The driver then repeats the
// step, which finds that version, too.
func (t *store) swapOne(ctx context.Context, srv *server, s *swap.Swap, version uint64) (map[uint64]time.Time, error) {
	o := options.FindOneAndUpdate().SetUpsert(s.Version == 0).SetReturnDocument(options.After)
	if srv.canProject {
		o.SetProjection(stampProjection)
	}
	var d document
	err := srv.entries.FindOneAndUpdate(ctx, replacedFilter(s), t.updateFor(s, version), o).Decode(&d)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments), mongo.IsDuplicateKeyError(err): // the document has another version
		return nil, nil
	case err != nil:
		return nil, err
	}
	return map[uint64]time.Time{uint64(d.Version): d.At}, nil
}

var stampProjection = bson.D{{Key: "at", Value: 1}, {Key: "version", Value: 1}}

// swapMany makes many swaps in two round trips, because the answer to the writes does not
// have the stamps.
func (t *store) swapMany(ctx context.Context, srv *server, swaps []swap.Swap, versions []uint64) (map[uint64]time.Time, error) {
	models, names := make([]mongo.WriteModel, len(swaps)), make(bson.A, len(swaps))
	for i := range swaps {
		s := &swaps[i]
		names[i] = s.Name
		models[i] = mongo.NewUpdateOneModel().SetFilter(replacedFilter(s)).SetUpdate(t.updateFor(s, versions[i])).SetUpsert(s.Version == 0)
	}
	_, err := srv.entries.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	if err != nil && !onlyDuplicates(err) {
		return nil, err
	}
	c, err := srv.entries.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: names}}}}, options.Find().SetProjection(stampProjection))
	if err != nil {
		return nil, err
	}
	stamps := map[uint64]time.Time{}
	return stamps, eachDocument(ctx, c, func(d *document) error {
		stamps[uint64(d.Version)] = d.At
		return nil
	})
}

// onlyDuplicates reports whether all errors mean that a name already exists.
func onlyDuplicates(err error) bool {
	bulk, ok := errors.AsType[mongo.BulkWriteException](err)
	isOther := func(e mongo.BulkWriteError) bool { return !mongo.IsDuplicateKeyError(e) }
	return ok && bulk.WriteConcernError == nil && !slices.ContainsFunc(bulk.WriteErrors, isOther)
}

// swapResult returns the outcome of a swap that the server wrote with this stamp. A void
// swap has also replaced the document, but the previous value still counts.
func (t *store) swapResult(s *swap.Swap, version uint64, stamp, sent time.Time) swap.Swapped {
	at := locktable.At(stamp)
	if newEnvelope(s).InsideWindow(at) {
		t.clock.RecordInside(s.Window)
		t.clock.Learn(at, sent, time.Now())
		return swap.Swapped{Done: true, Version: version}
	}
	// The assumed time of the server was wrong: another server may have answered "hello".
	// The stamp is the time of the present server.
	t.clock.RecordOutside(s.Window)
	t.clock.Learn(at, sent, time.Now())
	return swap.Swapped{OutsideWindow: true, HasStored: true, Stored: swap.Stored{Value: s.Previous, Version: version}}
}

// Scan implements swap.Store.
func (t *store) Scan(ctx context.Context, prefix string) iter.Seq2[swap.Named, error] {
	return func(yield func(swap.Named, error) bool) {
		if err := t.scan(ctx, prefix, yield); err != nil {
			yield(swap.Named{}, t.driverError(ctx, err))
		}
	}
}

func (t *store) scan(ctx context.Context, prefix string, yield func(swap.Named, error) bool) error {
	srv, err := t.server(ctx)
	if err != nil {
		return err
	}
	c, err := srv.entries.Find(ctx, prefixFilter(prefix), options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for c.Next(ctx) {
		n, damaged := decodeNamed(c)
		w, err := t.Time(ctx)
		if n.Now = w.From; err == nil && n.Name == "" {
			err = damaged
		}
		if err != nil {
			return err
		}
		if !yield(n, damaged) {
			return nil
		}
	}
	return c.Err()
}

// decodeNamed decodes the document at a cursor. The error concerns only this document.
func decodeNamed(c *mongo.Cursor) (n swap.Named, err error) {
	n.Name, _ = c.Current.Lookup("_id").StringValueOK()
	var d document
	if err := decode(c, &d); err != nil {
		return n, err
	}
	n.Stored, err = d.stored()
	return n, err
}

// maxSuffix makes a prefix sort after all names with that prefix.
var maxSuffix = strings.Repeat("\U0010FFFF", driver.MaxName/4+1)

// prefixFilter returns the filter for the names with a prefix. MongoDB compares strings
// byte by byte. A prefix may end within a character, but a string cannot. So prefixFilter
// removes that character, and the driver over the table drops other names.
func prefixFilter(prefix string) bson.D {
	for len(prefix) > 0 && !utf8.ValidString(prefix) {
		prefix = prefix[:len(prefix)-1]
	}
	if prefix == "" {
		return bson.D{}
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: prefix}, {Key: "$lt", Value: prefix + maxSuffix}}}}
}

// Properties implements swap.Store.
func (t *store) Properties() driver.Properties {
	return driver.Properties{
		Backend: "mongodb", Location: t.location(), Clock: driver.ClockServer,
		FenceSurvives: driver.FencesRiseByClock,
		MinTTL:        driver.MinTTL, PushesGrants: true,
	}
}

// Close implements swap.Store.
func (t *store) Close() error {
	t.end()
	t.loops.Close()
	t.closeClient()
	return nil
}
