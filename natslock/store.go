package natslock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/locktable/swap/stamped"
)

// store is a swap.Store over a bucket. The version of a value is its sequence in the
// bucket's stream. Its StoreState is a loadNote.
type store struct {
	nc        *nats.Conn
	options   Options
	stream    string // the name of the bucket's stream
	prefix    string // begins the subjects of the bucket's keys
	putPrefix string // begins the subjects to which the driver sends the keys' messages
	clock     swap.Clock
	bucket    bucket
	push      push
	ownsConn  bool // the driver opened the connection

	reads, writes responseWatchdog
	roundTrip     atomic.Int64 // the round-trip time of the last answer, a time.Duration
	missedStamps  atomic.Int32 // consecutive stamps that did not arrive, see maxMissedStamps

	watchesDown atomic.Int64    // the number of watched names whose subscription is down
	life        context.Context // ends at Close
	end         context.CancelFunc
}

// Time implements swap.Store. The driver learns the server's clock from the stamps
// of its own swaps. It asks the stream for the time if the last stamp is old, and for the
// configuration once a minute.
func (s *store) Time(ctx context.Context) (swap.Window, error) {
	if s.bucket.isConfigDue(time.Now()) {
		if err := s.askTime(ctx); err != nil {
			return swap.Window{}, err
		}
	}
	return s.clock.Ask(ctx, s.askTime)
}

func (s *store) askTime(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	sent := time.Now()
	info, err := s.readConfig(ctx, false)
	if err != nil {
		return s.driverError(err)
	}
	s.clock.Learn(locktable.At(info.TimeStamp), sent, time.Now())
	s.missedStamps.Store(0)
	return nil
}

// Load implements swap.Store.
func (s *store) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	// Ask for the time first, if it is not known. On a slow link, values that are read
	// before that would be too old, see maxLoadAge.
	if _, err := s.Time(ctx); err != nil {
		return nil, err
	}
	all, errs := s.loadAll(ctx, names)
	return all, cmp.Or(errs...)
}

// loadAll reads values, and returns an error or nil for each.
func (s *store) loadAll(ctx context.Context, names []string) ([]swap.Stored, []error) {
	all, errs := make([]swap.Stored, len(names)), make([]error, len(names))
	inParallel(len(names), func(i int) {
		m, err := s.readLast(ctx, keyOf(names[i]), 0)
		if errs[i] = err; m != nil {
			all[i], errs[i] = m.stored(time.Now())
		}
	})
	return all, errs
}

// loadNote is the StoreState of swap.Stored: the facts about a value besides its
// sequence.
type loadNote struct {
	receivedAt time.Time     // when the client received the value or its acknowledgement
	void       []uint64      // see stamped.Envelope
	neededFor  time.Duration // the time after its stamp for which the value is needed
}

// stored returns the value in a message. at is the time from which the age of the value
// counts. A message without data means that a tool has deleted the key.
func (m *message) stored(at time.Time) (swap.Stored, error) {
	if len(m.data) == 0 {
		return swap.Stored{Version: m.sequence, StoreState: loadNote{receivedAt: at}}, nil
	}
	e, err := stamped.Decode(m.data)
	if err != nil {
		return swap.Stored{}, err
	}
	value, note := e.ValueAt(m.stamp), loadNote{receivedAt: at, void: e.VoidAt(m.sequence, m.stamp)}
	if entry, err := locktable.Decode(value); err == nil { // if not, the table reports the damage
		note.neededFor = m.stamp.Until(entry.Ends())
	}
	if !e.InsideWindow(m.stamp) {
		note.neededFor = max(note.neededFor, m.keepFor)
	}
	return swap.Stored{Value: value, Version: m.sequence, StoreState: note}, nil
}

// Scan implements swap.Store.
func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[swap.Named, error] {
	return func(yield func(swap.Named, error) bool) {
		names, err := s.names(ctx, prefix)
		if err != nil {
			yield(swap.Named{}, err)
			return
		}
		for chunk := range slices.Chunk(names, maxConcurrentRequests) {
			all, errs := s.loadAll(ctx, chunk)
			w, err := s.Time(ctx)
			for i, name := range chunk {
				if _, damaged := errors.AsType[*locktable.CorruptError](errs[i]); err != nil || errs[i] != nil && !damaged {
					yield(swap.Named{}, cmp.Or(err, errs[i]))
					return
				}
				row := swap.Named{Name: name, Stored: all[i], Now: w.From}
				if (errs[i] != nil || len(all[i].Value) > 0) && !yield(row, errs[i]) {
					return
				}
			}
		}
	}
}

// names returns the names with a prefix, sorted.
func (s *store) names(ctx context.Context, prefix string) (names []string, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	// This request is repeated until a server answers. The requests below are not,
	// because their answers may take long.
	if _, err := retryRead(ctx, s, s.find); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, driver.MaxRequest)
	defer cancel()
	for listed, more := 0, true; more; {
		page, err := s.askStream(ctx, "INFO", fmt.Sprintf(`{"subjects_filter":%q,"offset":%d}`, s.prefix+">", listed))
		if err != nil {
			return nil, err
		}
		for subject := range page.State.Subjects {
			name, ok := nameOf(strings.TrimPrefix(subject, s.prefix))
			if ok && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		n := len(page.State.Subjects)
		listed += n
		more = n > 0 && listed < page.Total
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// keyOf returns the key of a name: the name, with = and two hexadecimal digits for each
// byte that is not a letter, digit, dash, underscore or slash. So people can read keys,
// the key of a prefix is a prefix of the names' keys, and no two names have the same key.
func keyOf(name string) string {
	var b strings.Builder
	b.Grow(len(name) + 8)
	for i := range len(name) {
		if c := name[i]; alphanumeric(rune(c)) || c == '-' || c == '_' || c == '/' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// nameOf returns the name of a key, or false if keyOf did not make the key.
func nameOf(key string) (name string, ok bool) {
	name, err := url.PathUnescape(strings.ReplaceAll(key, "=", "%"))
	return name, err == nil && keyOf(name) == key
}

// Properties implements swap.Store.
func (s *store) Properties() driver.Properties {
	return driver.Properties{
		Backend: "nats", Location: s.location(), Clock: driver.ClockServer,
		FenceSurvives: driver.FencesRiseByClock,
		MinTTL:        driver.MinTTL,
		PushesGrants:  s.push.works(),
		PushesChanges: s.watchesDown.Load() == 0 && s.maySendStamps() && s.nc.IsConnected(),
	}
}

// DelaysWrites implements swap.DelayedWriter. The next leader's log may have a write that
// the client gave up, while the old leader, which was cut off, answers that the key has
// no message.
func (s *store) DelaysWrites() {}

// Close implements swap.Store.
func (s *store) Close() error {
	s.end()
	s.push.close(s.nc)
	if s.ownsConn {
		s.nc.Close()
	}
	return nil
}

// maxConcurrentRequests is the largest number of concurrent requests of one call. A
// client renews as many leases in one call. With fewer requests, the first values would
// be too old when the last ones arrive, see maxLoadAge, and the driver would have to read
// each of them again.
const maxConcurrentRequests = 256

// inParallel calls f for each number below n, several at a time.
func inParallel(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var all sync.WaitGroup
	running := make(chan struct{}, maxConcurrentRequests)
	for i := range n {
		running <- struct{}{}
		all.Go(func() { f(i); <-running })
	}
	all.Wait()
}
