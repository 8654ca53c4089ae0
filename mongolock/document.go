package mongolock

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
	"github.com/pawl-go/pawl/locktable/optimistic/stamped"
)

// A document is what is stored of a name.
//
// The server writes its time into it, as At, in the moment in which it takes effect, for
// it cannot be told to refuse what comes too late: see package stamped.
type document struct {
	Name     string    `bson:"_id"`
	Version  int64     `bson:"version"` // random, so that no two swaps have the same
	At       time.Time `bson:"at"`
	Envelope []byte    `bson:"envelope"`
}

// stored is what counts of it.
func (d *document) stored() (s optimistic.Stored, err error) {
	e, err := stamped.Open(d.Envelope)
	if err != nil {
		return s, fmt.Errorf("the document of %.80q: %w", d.Name, err)
	}
	return optimistic.Stored{Value: e.At(locktable.At(d.At)), Version: uint64(d.Version)}, nil
}

// envelope is what a swap stores. A stamp is cut to the millisecond: it stands for what
// began up to one before the end of the window, and no later.
func envelope(s *optimistic.Swap) *stamped.Envelope {
	e := stamped.Next(*s, nil)
	e.Window.To = e.Window.To.Add(-time.Millisecond)
	return e
}

// whole is a time cut to the millisecond.
func whole(i locktable.Instant) locktable.Instant { return i - i%1000 }

// newVersion draws the version of a value.
func newVersion() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return max(1, binary.NativeEndian.Uint64(b[:])>>1)
}

// replaced is the filter for the document that a swap replaces. With no version it finds
// none, and the name is inserted: if another one has done so, that is a duplicate.
func replaced(s *optimistic.Swap) bson.D {
	return bson.D{{Key: "_id", Value: s.Name}, {Key: "version", Value: int64(s.Version)}}
}

func (t *store) update(s *optimistic.Swap, version uint64) bson.D {
	forget := time.UnixMicro(int64(s.Entry.Ends())).Add(t.Retention)
	return bson.D{
		{Key: "$currentDate", Value: bson.D{{Key: "at", Value: true}}},
		{Key: "$set", Value: bson.D{
			{Key: "version", Value: int64(version)},
			{Key: "envelope", Value: envelope(s).Append(nil)},
			{Key: "holders", Value: holders(s.Entry)},
			{Key: "waiting", Value: len(s.Entry.Queue)},
			{Key: "fence", Value: int64(s.Entry.Fence)},
		}},
		// If this is void, what was before it has to last as long as it would have.
		{Key: "$max", Value: bson.D{{Key: "forget", Value: forget}}},
	}
}

// mostBytes is how large the server lets a document be.
const mostBytes = 16 << 20

// full returns an error for a claim that joins an entry which is too large for one more.
// A document has the new value and the one before it, and what is shown to people.
func (t *store) full(s *optimistic.Swap) error {
	if s.Spare == 0 || 2*(len(s.Value)+s.Spare)+mostShown*(driver.MaxLabel+64) <= t.most {
		return nil
	}
	return &unfitError{
		problem: fmt.Sprintf("the entry has %d bytes, too many for one more claim in a document of %d", len(s.Was), t.most),
		hint:    "too many hold or wait for one name: use several names",
	}
}

// mostShown is how many holders are shown to people.
const mostShown = 100

// holders are shown to people who look into the database.
func holders(e *locktable.Entry) bson.A {
	all := bson.A{}
	for _, h := range e.Holders[:min(len(e.Holders), mostShown)] {
		all = append(all, bson.D{
			{Key: "host", Value: h.Owner.Host}, {Key: "pid", Value: h.Owner.PID},
			{Key: "fence", Value: int64(h.Fence)}, {Key: "until", Value: time.UnixMicro(int64(h.Expires))},
		})
	}
	return all
}
