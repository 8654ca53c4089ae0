package mongolock

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/locktable/swap/stamped"
)

// A document is the stored form of a name.
//
// The server writes its time into At at the moment of the update, because it cannot
// refuse an update that arrives too late, see package stamped.
type document struct {
	Name     string    `bson:"_id"`
	Version  int64     `bson:"version"` // random, so that no two swaps write the same version
	At       time.Time `bson:"at"`
	Envelope []byte    `bson:"envelope"`
}

// stored returns the value of the name and its version: the new value, or the previous
// value if the update is void.
func (d *document) stored() (s swap.Stored, err error) {
	e, err := stamped.Decode(d.Envelope)
	if err != nil {
		return s, fmt.Errorf("the document of %.80q: %w", d.Name, err)
	}
	return swap.Stored{Value: e.ValueAt(locktable.At(d.At)), Version: uint64(d.Version)}, nil
}

// newEnvelope returns the envelope that a swap stores. The server rounds a stamp down to
// the millisecond, so an update up to a millisecond after the window would still count.
// So newEnvelope ends the window a millisecond earlier.
func newEnvelope(s *swap.Swap) *stamped.Envelope {
	e := stamped.Next(*s, nil)
	e.Window.To = e.Window.To.Add(-time.Millisecond)
	return e
}

// replacedFilter returns the filter for the document that a swap replaces. Version 0
// matches no document, so the update inserts the name. If another client has inserted the
// name, the server returns a duplicate key error.
func replacedFilter(s *swap.Swap) bson.D {
	return bson.D{{Key: "_id", Value: s.Name}, {Key: "version", Value: int64(s.Version)}}
}

func (t *store) updateFor(s *swap.Swap, version uint64) bson.D {
	forget := time.UnixMicro(int64(s.Entry.Ends())).Add(t.Retention)
	return bson.D{
		{Key: "$currentDate", Value: bson.D{{Key: "at", Value: true}}},
		{Key: "$set", Value: bson.D{
			{Key: "version", Value: int64(version)},
			{Key: "envelope", Value: newEnvelope(s).Append(nil)},
			{Key: "holders", Value: shownHolders(s.Entry)},
			{Key: "waiting", Value: len(s.Entry.Queue)},
			{Key: "fence", Value: int64(s.Entry.Fence)},
		}},
		// If this update is void, the previous value counts. So this update must not make
		// the server delete the document earlier.
		{Key: "$max", Value: bson.D{{Key: "forget", Value: forget}}},
	}
}

// maxDocumentBytes is the server's limit for a document.
const maxDocumentBytes = 16 << 20

// checkSize returns an error for a claim whose entry is too large for one more claim. A
// document has the new value, the previous value, and the fields for people.
func (t *store) checkSize(s *swap.Swap) error {
	if s.ReserveBytes == 0 || 2*(len(s.Value)+s.ReserveBytes)+maxShownHolders*(driver.MaxLabelSize+64) <= t.maxBytes {
		return nil
	}
	return &engine.ConfigError{
		Problem: fmt.Sprintf("the entry has %d bytes, too many for one more claim in a document of %d", len(s.Previous), t.maxBytes),
		Hint:    "too many hold or wait for one name: use several names",
	}
}

// maxShownHolders is the number of holders that a document shows to people.
const maxShownHolders = 100

// shownHolders describes the holders for people who read the document.
func shownHolders(e *locktable.Entry) bson.A {
	all := bson.A{}
	for _, h := range e.Holders[:min(len(e.Holders), maxShownHolders)] {
		all = append(all, bson.D{
			{Key: "host", Value: h.Owner.Host}, {Key: "pid", Value: h.Owner.PID},
			{Key: "fence", Value: int64(h.Fence)}, {Key: "until", Value: time.UnixMicro(int64(h.Expires))},
		})
	}
	return all
}
